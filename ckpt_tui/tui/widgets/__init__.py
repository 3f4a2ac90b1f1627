"""The pieces that draw: lines of toned text, a table that redraws changed rows only, and a box over the screen."""
