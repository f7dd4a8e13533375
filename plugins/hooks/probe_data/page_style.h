#pragma once

namespace probe_data {

inline constexpr char kPageStyle[] = R"(
:root { color-scheme: light dark; --text: #1d2329; --soft: #66707a; --line: #e1e5e9; --card: #fff; --ground: #f5f6f8;
  --accent: #2563b0; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e7eb; --soft: #96a0aa; --line: #343b43; --card: #20252b;
  --ground: #15191d; --accent: #7db3f2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 20px 28px 60px; background: var(--ground); color: var(--text);
  font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
nav { display: flex; justify-content: space-between; gap: 24px; padding-bottom: 12px; border-bottom: 1px solid var(--line); }
nav span { visibility: hidden; }
h1 { margin: 22px 0 0; font-size: 24px; font-weight: 650; }
h2 { margin: 0; font-size: 16px; font-weight: 650; overflow-wrap: anywhere; }
.remark { margin: 2px 0 14px; color: var(--soft); font-size: 13px; }
section { margin-top: 16px; padding: 16px 20px 18px; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; }
.pictures { display: flex; flex-wrap: wrap; gap: 14px; }
figure { margin: 0; }
figure img { display: block; max-width: 100%; background: #000; }
.enlarged { image-rendering: pixelated; }
figcaption { margin-top: 4px; text-align: center; font-size: 13px; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; max-width: 260px; }
table { border-collapse: collapse; margin: 0 0 10px; }
section > h2 + table { margin-top: 10px; }
th, td { padding: 4px 22px 4px 0; text-align: left; font-weight: 400; overflow-wrap: anywhere; }
th { color: var(--soft); }
td { font-variant-numeric: tabular-nums; }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono",
  monospace; }
.bars { display: block; width: 100%; max-width: 760px; height: auto; }
.bars rect { fill: var(--accent); }
.bars rect:hover { opacity: .7; }
.bars line { stroke: var(--soft); stroke-width: 1; }
.bars text { fill: var(--soft); font-size: 12px; }
.steps { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 14px; }
.card { display: block; padding: 12px; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.card b { display: block; margin-bottom: 8px; color: var(--text); font-weight: 600; }
.card i { color: var(--soft); }
.card img { display: block; width: 100%; margin-top: 6px; background: #000; image-rendering: pixelated; }
)";

inline constexpr char kArrowKeys[] =
    "<script>addEventListener(\"keydown\", e => { const to = { ArrowLeft: \"previous\", ArrowRight: \"next\" }[e.key];"
    " if (to && document.getElementById(to)) document.getElementById(to).click(); });</script>\n";

}  // namespace probe_data
