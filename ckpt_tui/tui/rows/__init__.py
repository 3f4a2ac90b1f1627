"""State to rows and lines: what is drawn, as text with tones. Pure, and no textual in here."""
