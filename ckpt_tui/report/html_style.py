"""How an HTML report looks: the one style sheet in the page. No colour says what a word does not say too."""

STYLE = """\
:root {
  --paper: #fbfaf8; --card: #ffffff; --ink: #1d1f24; --soft: #5f6570; --line: #e2dfd8; --code: #f1efea;
  --bad: #b3261e; --bad-soft: #fbe4e1; --good: #2e6b3e; --good-soft: #e3f1e4; --warn: #8a5a00; --warn-soft: #fbedcf;
  --plain-soft: #dde7f7; --plain: #2b4f8f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #15171b; --card: #1c1f25; --ink: #e6e4df; --soft: #9aa0ab; --line: #31353d; --code: #262a31;
    --bad: #ff9b90; --bad-soft: #4a1f1c; --good: #8fd19e; --good-soft: #1d3324; --warn: #f0c368; --warn-soft: #3f3013;
    --plain-soft: #22314d; --plain: #a5c1f5;
  }
}
* { box-sizing: border-box; }
html { background: var(--paper); color: var(--ink); }
body { margin: 0; font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
code, pre, .matrix text { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
code { font-size: .87em; unicode-bidi: isolate; overflow-wrap: anywhere; }
li code, p code, h3 code { background: var(--code); border-radius: 4px; padding: .08em .35em; }
header { border-left: 6px solid var(--soft); padding: .2rem 0 .2rem 1.1rem; margin-bottom: 1.6rem; }
header h1 { font-size: 1.3rem; line-height: 1.35; font-weight: 600; margin: .35rem 0 0; overflow-wrap: anywhere; }
header .word { font-weight: 700; letter-spacing: .09em; font-size: .82rem; padding: .2rem .6rem; border-radius: 4px; }
header.bad { border-color: var(--bad); } header.bad .word { background: var(--bad-soft); color: var(--bad); }
header.good { border-color: var(--good); } header.good .word { background: var(--good-soft); color: var(--good); }
header.warn { border-color: var(--warn); } header.warn .word { background: var(--warn-soft); color: var(--warn); }
h2 { font-size: 1.05rem; margin: 2.4rem 0 .7rem; padding-bottom: .3rem; border-bottom: 1px solid var(--line); }
h3 { font-size: .98rem; margin: 0 0 .5rem; overflow-wrap: anywhere; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
p.bad { color: var(--bad); font-weight: 600; } p.warn { color: var(--warn); font-weight: 600; }
ul { margin: .4rem 0 .8rem; padding-left: 1.2rem; } li { margin: .15rem 0; overflow-wrap: anywhere; }
.more { color: var(--soft); font-style: italic; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.card { padding: 1rem 1.2rem; margin: 1rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; margin: .4rem 0 .9rem; font-size: .92em; }
th, td { padding: .32rem .9rem .32rem 0; vertical-align: top; text-align: left; }
th.r, td.r { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.rows { width: 100%; }
.rows thead th { color: var(--soft); font-weight: 500; font-size: .88em; border-bottom: 1px solid var(--line); }
.rows tbody tr + tr td { border-top: 1px solid var(--line); }
.facts th { color: var(--soft); font-weight: 500; white-space: nowrap; padding-right: 1.6rem; }
pre { background: var(--code); border-radius: 6px; padding: .7rem .9rem; overflow-x: auto; margin: .5rem 0 .9rem; }
pre code { font-size: .84rem; overflow-wrap: normal; }
pre.sh { border-left: 3px solid var(--good); white-space: pre-wrap; }
pre.sh code { overflow-wrap: anywhere; } td code.whole { white-space: nowrap; }
figure { margin: 1.4rem 0; } figcaption { color: var(--soft); font-size: .9em; margin-top: .5rem; }
.matrix { display: block; }
.matrix text { font-size: 12px; fill: var(--ink); }
.matrix .head { text-anchor: middle; fill: var(--soft); font-size: 11px; }
.matrix .label { text-anchor: end; }
.cell rect { fill: var(--code); } .cell text { text-anchor: middle; dominant-baseline: central; fill: var(--soft); }
.cell.bad rect { fill: var(--bad-soft); stroke: var(--bad); } .cell.bad text { fill: var(--bad); font-weight: 700; }
.cell.warn rect { fill: var(--warn-soft); } .cell.warn text { fill: var(--warn); font-weight: 700; }
.cell.plain rect { fill: var(--plain-soft); } .cell.plain text { fill: var(--plain); font-weight: 700; }
@media print { main { max-width: none; padding: 0; } .card { break-inside: avoid; } .scroll { overflow: visible; } }
"""
