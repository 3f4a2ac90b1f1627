"""The themes: our own dark and light ones with opaque dimmed colours, and two that use dim and reverse.

Where a terminal has 16 colours ours would become others (amber red, green grey): one theme names those of the terminal
itself. The other has none on its surfaces, as NO_COLOR asks.

One accent; red and amber mean trouble and nothing else. Every tone of `rows.spans.TONES` has a colour and a style
here, which `app.tcss` hands to the tone's class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.theme import Theme

if TYPE_CHECKING:
    from rich.style import Style
    from textual.widget import Widget

from .rows.spans import TONES

DARK, LIGHT, ANSI, SIXTEEN = "ckpt-dark", "ckpt-light", "ckpt-ansi", "ckpt-16"
TONE_CLASSES = frozenset(f"tone--{tone}" for tone in TONES)

#: Surfaces of the verdict line, as (name, background, text) for dark and light.
_SURFACES = {
    DARK: {
        "neutral": ("#2b3440", "#d5dce4"), "run": ("#15477a", "#d6e9fb"), "well": ("#12613a", "#d8f5e3"),
        "alarm": ("#9f222c", "#ffe3e3"), "caution": ("#dca237", "#231800"),
    },
    LIGHT: {
        "neutral": ("#dbe2ea", "#1d2731"), "run": ("#0b5cad", "#ffffff"), "well": ("#146c38", "#ffffff"),
        "alarm": ("#b3202b", "#ffffff"), "caution": ("#f2bd4b", "#2a1c00"),
    },
    ANSI: dict.fromkeys(("neutral", "run", "well", "alarm", "caution"), ("ansi_default", "ansi_default")),
    SIXTEEN: {
        "neutral": ("ansi_white", "ansi_black"), "run": ("ansi_blue", "ansi_bright_white"),
        "well": ("ansi_green", "ansi_black"), "alarm": ("ansi_red", "ansi_bright_white"),
        "caution": ("ansi_yellow", "ansi_black"),
    },
}  # fmt: skip
_TONES = {
    DARK: {
        "plain": "#d5dce4", "strong": "#ffffff", "dim": "#8995a4", "faint": "#465160", "active": "#56b0ff",
        "good": "#45bf76", "warn": "#f0b04a", "bad": "#ff7070", "head": "#8995a4", "cached": "#2d6ca3",
        "read": "#56b0ff",
    },
    LIGHT: {
        "plain": "#1d2731", "strong": "#000000", "dim": "#5a6877", "faint": "#b4bec9", "active": "#0a66c2",
        "good": "#157f3b", "warn": "#8a5700", "bad": "#c2202c", "head": "#5a6877", "cached": "#84b6e3",
        "read": "#0a66c2",
    },
    ANSI: {
        "plain": "ansi_default", "strong": "ansi_default", "dim": "ansi_default", "faint": "ansi_default",
        "active": "ansi_cyan", "good": "ansi_green", "warn": "ansi_yellow", "bad": "ansi_red", "head": "ansi_default",
        "cached": "ansi_blue", "read": "ansi_cyan",
    },
}  # fmt: skip
_TONES[SIXTEEN] = _TONES[ANSI]
_STYLES = {"strong": "bold", "bad": "bold", "warn": "bold"}
_ANSI_STYLES = {**_STYLES, "dim": "dim", "faint": "dim", "head": "dim"}


def _variables(name: str) -> dict[str, str]:
    """The theme variables that `app.tcss` uses: `tone-X`, `style-X`, and for surfaces `surface-X`."""
    ansi = name in {ANSI, SIXTEEN}
    styles = _ANSI_STYLES if ansi else _STYLES
    made = {f"tone-{tone}": colour for tone, colour in _TONES[name].items()}
    made |= {f"style-{tone}": styles.get(tone, "none") for tone in _TONES[name]}
    for surface, (ground, ink) in _SURFACES[name].items():
        made |= {f"surface-{surface}": ground, f"ink-{surface}": ink}
    made["style-surface"] = "reverse" if name == ANSI else "none"
    made["style-surface-strong"] = "reverse bold" if name == ANSI else "bold"
    made["style-cursor"] = "reverse" if ansi else "none"
    return made


_LOOKS = {
    DARK: {
        "background": "#0e1217", "surface": "#161c24", "panel": "#232c38", "scroll": "#2b3440", "hover": "#3a4655",
    },
    LIGHT: {
        "background": "#fbfcfd", "surface": "#f0f3f6", "panel": "#e2e8ef", "scroll": "#cfd7e0", "hover": "#b4bec9",
    },
}  # fmt: skip


def _opaque(name: str, *, dark: bool) -> Theme:
    looks, tones = _LOOKS[name], _TONES[name]
    return Theme(
        name=name,
        primary=tones["active"],
        secondary=tones["active"],
        accent=tones["active"],
        warning=tones["warn"],
        error=tones["bad"],
        success=tones["good"],
        foreground=tones["plain"],
        background=looks["background"],
        surface=looks["surface"],
        panel=looks["panel"],
        dark=dark,
        variables={
            **_variables(name),
            "cursor": looks["panel"],
            "block-cursor-background": looks["panel"],
            "block-cursor-foreground": tones["strong"],
            "block-cursor-text-style": "none",
            "input-cursor-background": tones["active"],
            "input-cursor-foreground": looks["background"],
            "border": tones["active"],
            "border-blurred": tones["faint"],
            "scrollbar": looks["scroll"],
            "scrollbar-hover": looks["hover"],
            "scrollbar-active": looks["hover"],
            "scrollbar-background": looks["background"],
            "scrollbar-background-hover": looks["background"],
            "scrollbar-background-active": looks["background"],
            "scrollbar-corner-color": looks["background"],
        },
    )


def _ansi(name: str) -> Theme:
    return Theme(
        name=name,
        primary="ansi_cyan",
        accent="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        ansi=True,
        variables={
            **_variables(name),
            "cursor": "ansi_default",
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "border": "ansi_default",
            "border-blurred": "ansi_default",
            "block-cursor-foreground": "ansi_default",
            "block-cursor-background": "ansi_default",
            "block-cursor-text-style": "reverse",
            "input-cursor-background": "ansi_default",
            "input-cursor-foreground": "ansi_default",
            "input-cursor-text-style": "reverse",
            "scrollbar": "ansi_white",
            "scrollbar-hover": "ansi_white",
            "scrollbar-active": "ansi_white",
        },
    )


def themes() -> tuple[Theme, ...]:
    """All themes, the default first."""
    return _opaque(DARK, dark=True), _opaque(LIGHT, dark=False), _ansi(ANSI), _ansi(SIXTEEN)


def tone_style(widget: Widget, tone: str) -> Style:
    """The style of a tone on a widget that has `TONE_CLASSES`."""
    return widget.get_component_rich_style(f"tone--{tone}", partial=True)
