/// The style sheet of the HTML report, for light and dark colour schemes and for wide and narrow windows.
///
/// All classes begin with `r-`, because the drawing of the graph adds its own style sheet to the page. Colours are those of the drawing;
/// text has a contrast of at least 4.5 to 1 (WCAG 2.2, level AA) in both schemes.
enum ReportStyle {
  static let sheet = """
    :root{color-scheme:light dark;--paper:#f7f8fa;--card:#fff;--edge:#dde2e8;--ink:#16202b;--mute:#586573;--grid:#e8ebef;
    --blue:#1f62c4;--teal:#0b756c;--orange:#b95408;--violet:#6d3fcb;--red:#b3261e;--amber:#8a5a00;--good:#1c6b34;
    --blue-soft:#dbe7fa;--red-soft:#fbe6e4;--amber-soft:#fcf1d9;--good-soft:#e0f2e5}
    @media (prefers-color-scheme:dark){:root{--paper:#12161b;--card:#1c2229;--edge:#333d47;--ink:#e9eef3;--mute:#9dabb8;
    --grid:#28303a;--blue:#74acff;--teal:#45ccbd;--orange:#f2ae57;--violet:#b99cf7;--red:#ff8a80;--amber:#f0c060;--good:#7fd698;
    --blue-soft:#1d2f4a;--red-soft:#43211f;--amber-soft:#3c3019;--good-soft:#1b3524}}
    *{box-sizing:border-box}
    body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI","Helvetica Neue",Arial,sans-serif;
    -webkit-text-size-adjust:100%}
    main,header,footer{max-width:1180px;margin:0 auto;padding:0 24px}
    header{padding-top:36px}
    h1{font-size:28px;line-height:1.2;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}
    h2{font-size:18px;line-height:1.3;margin:0 0 2px}
    h3{font-size:14px;margin:0;font-weight:600;overflow-wrap:anywhere}
    p{margin:0}
    section{margin-top:40px}
    footer{padding-top:40px;padding-bottom:40px;color:var(--mute);font-size:13px}
    .r-sub{color:var(--mute);font-size:14px;margin-bottom:14px;max-width:100ch}
    .r-head{display:flex;flex-wrap:wrap;gap:8px 14px;align-items:center;margin-bottom:6px}
    .r-pill{font-size:13px;font-weight:600;padding:2px 10px;border-radius:99px}
    .r-pill-good{background:var(--good-soft);color:var(--good)}
    .r-pill-bad{background:var(--red-soft);color:var(--red)}
    .r-graph+.r-graph{border-top:1px solid var(--edge);margin-top:56px}
    .r-tiles{display:flex;flex-wrap:wrap;gap:10px;margin-top:22px}
    .r-tile{flex:1 1 190px;background:var(--card);border:1px solid var(--edge);border-radius:10px;padding:12px 14px}
    .r-tile b{display:block;font-size:22px;line-height:1.25;font-weight:650;font-variant-numeric:tabular-nums;white-space:nowrap}
    .r-tile span{color:var(--mute);font-size:13px}
    .r-tile em{display:block;color:var(--mute);font-size:12.5px;font-style:normal;overflow-wrap:anywhere}
    .r-tile-bad b{color:var(--red)}
    .r-list{list-style:none;margin:8px 0 0;padding:0;display:grid;gap:8px}
    .r-list li{background:var(--amber-soft);color:var(--ink);border-left:4px solid var(--amber);border-radius:4px 8px 8px 4px;padding:8px 12px;
    overflow-wrap:anywhere}
    .r-list .r-serious{background:var(--red-soft);border-color:var(--red)}
    .r-list .r-fine{background:var(--good-soft);border-color:var(--good)}
    .r-list b{font-weight:650}
    .r-card{background:var(--card);border:1px solid var(--edge);border-radius:10px;padding:14px 16px}
    .r-scroll{overflow-x:auto;background:var(--card);border:1px solid var(--edge);border-radius:10px}
    table{border-collapse:collapse;width:100%;font-size:13.5px}
    th,td{padding:7px 12px;text-align:left;white-space:nowrap;border-top:1px solid var(--grid)}
    thead th{border-top:0;color:var(--mute);font-weight:500;font-size:12.5px}
    .r-figure{text-align:right;font-variant-numeric:tabular-nums}
    .r-name{font-weight:600}
    .r-bad{color:var(--red);font-weight:600}
    .r-drawing{overflow-x:auto;border-radius:14px;border:1px solid var(--edge)}
    .r-drawing svg{display:block;max-width:100%;height:auto;margin:0 auto}
    .r-narrow{display:none}
    .r-charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:12px}
    .r-key{display:flex;flex-wrap:wrap;gap:2px 14px;color:var(--mute);font-size:12.5px;font-variant-numeric:tabular-nums}
    .r-key b{color:var(--ink);font-weight:600}
    .r-between{display:flex;flex-wrap:wrap;justify-content:space-between;gap:2px 14px;align-items:baseline}
    .r-chart{display:block;width:100%;margin-top:8px}
    .r-axis{display:flex;justify-content:space-between;color:var(--mute);font-size:11.5px;font-variant-numeric:tabular-nums;margin-top:2px}
    .r-bar{fill:var(--blue)}.r-over{fill:var(--red)}.r-limit{stroke:var(--red);stroke-width:1.5;stroke-dasharray:4 3}
    .r-base{stroke:var(--grid);stroke-width:1}
    .r-wave{fill:var(--blue)}.r-wave-end{fill:var(--teal)}
    .r-spark{display:inline-block;width:130px;height:18px;vertical-align:middle}
    .r-share{display:inline-block;width:64px;height:8px;border-radius:4px;background:var(--grid);overflow:hidden;vertical-align:middle;margin-left:8px}
    .r-share i{display:block;height:100%;background:var(--teal)}
    .r-stack{display:flex;height:8px;min-width:80px;border-radius:4px;overflow:hidden;background:var(--grid)}
    .r-oldest{background:var(--orange)}.r-newest{background:var(--red)}.r-stale{background:var(--violet)}
    .r-dot{display:inline-block;width:10px;height:10px;border-radius:3px;margin-right:5px;vertical-align:-1px}
    .r-turn{display:grid;grid-template-columns:92px 1fr 92px;gap:2px 14px;align-items:center;padding:7px 0;border-top:1px solid var(--grid)}
    .r-turn:first-child{border-top:0}
    .r-turn span{color:var(--mute);font-size:13px;font-variant-numeric:tabular-nums}
    .r-turn b{text-align:right;font-variant-numeric:tabular-nums}
    .r-track{position:relative;height:22px;border-radius:5px;background:var(--grid)}
    .r-track i{position:absolute;top:0;bottom:0;min-width:2px}
    .r-track i:first-child{border-radius:5px 0 0 5px}
    .r-speech{background:var(--blue)}.r-closing{background:var(--orange)}.r-waiting{background:var(--violet)}
    .r-opening{background:var(--amber)}.r-playing{background:var(--teal)}
    .r-cut{background:var(--red);width:3px}
    @media (max-width:640px){main,header,footer{padding-left:14px;padding-right:14px}header{padding-top:22px}h1{font-size:23px}
    section{margin-top:30px}.r-tile{flex-basis:130px}.r-tile b{font-size:19px}.r-wide{display:none}.r-narrow{display:block}
    .r-turn{grid-template-columns:1fr auto}.r-turn .r-track{grid-column:1/-1;grid-row:2}}
    @media print{section{break-inside:avoid}}
    """
}
