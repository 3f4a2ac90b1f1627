"""How facts become words: units, glyphs, folded rank sets, and `safe`, through which every untrusted name passes."""
