#include "tools/page.h"

#include "base/numbers.h"

#include <math.h>
#include <string.h>

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fbfbf9;--card:#fff;--ink:#1c2024;--soft:#5c646c;--line:#dfe1e0;--grid:#ecedec;"
    "--c0:#0b64a8;--c1:#b04a00;--c2:#00704f;--c3:#9a3b7e;--c4:#7a5c00;--c5:#4b4bb5;--c6:#5c646c;--c7:#00707c}\n"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1b1f23;--ink:#e8eaec;--soft:#a2abb3;--line:#32383e;"
    "--grid:#272c31;--c0:#67b3f0;--c1:#f2a057;--c2:#4cc79a;--c3:#e48fc4;--c4:#d9bd55;--c5:#a7a7f5;--c6:#a2abb3;"
    "--c7:#57c5d0}}\n"
    "svg{display:block;width:100%;height:auto;font:13px/1.2 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,"
    "'DejaVu Sans',sans-serif;fill:var(--ink)}\n"
    "svg .soft{fill:var(--soft)}svg .grid{stroke:var(--grid);stroke-width:1}svg .axis{stroke:var(--line);"
    "stroke-width:1}svg .line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}"
    "svg .faint{stroke-width:1.2;opacity:.45}svg .end{text-anchor:end}svg .mid{text-anchor:middle}"
    "svg .bold{font-weight:600}svg .small{font-size:11.5px}svg .box{fill:var(--card);stroke:var(--line)}"
    "svg .edge{fill:none;stroke:var(--soft);stroke-width:1.3}svg .tip{fill:var(--soft)}\n"
    ".s0{stroke:var(--c0)}.s1{stroke:var(--c1)}.s2{stroke:var(--c2)}.s3{stroke:var(--c3)}.s4{stroke:var(--c4)}"
    ".s5{stroke:var(--c5)}.s6{stroke:var(--c6)}.s7{stroke:var(--c7)}\n"
    "svg .f0,.k0{fill:var(--c0);background:var(--c0)}svg .f1,.k1{fill:var(--c1);background:var(--c1)}"
    "svg .f2,.k2{fill:var(--c2);background:var(--c2)}svg .f3,.k3{fill:var(--c3);background:var(--c3)}"
    "svg .f4,.k4{fill:var(--c4);background:var(--c4)}svg .f5,.k5{fill:var(--c5);background:var(--c5)}"
    "svg .f6,.k6{fill:var(--c6);background:var(--c6)}svg .f7,.k7{fill:var(--c7);background:var(--c7)}\n";

static const char page_rules[] =
    "*{box-sizing:border-box}body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"
    "'Segoe UI',Roboto,Helvetica,Arial,'DejaVu Sans',sans-serif;-webkit-text-size-adjust:100%}\n"
    "main{max-width:1120px;margin:0 auto;padding:24px 8px 48px;display:grid;grid-template-columns:minmax(0,1fr);"
    "gap:16px;grid-auto-flow:dense}header,footer,section{grid-column:1/-1;min-width:0}\n"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em;overflow-wrap:anywhere}"
    "h2{font-size:15px;margin:0 0 10px;font-weight:600}p{margin:0 0 8px}.soft{color:var(--soft)}\n"
    "header{padding:0 8px}section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px "
    "12px}"
    "section>svg,section figure>svg{max-width:460px;margin:0 auto}\n"
    "dl.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(112px,1fr));gap:12px 12px;margin:16px 0 0}"
    "dl.facts dt{color:var(--soft);font-size:13px}dl.facts dd{margin:0;font-size:20px;font-weight:600;"
    "font-variant-numeric:tabular-nums;overflow-wrap:anywhere}dl.facts .s{font-size:15px;font-weight:400}\n"
    "code,pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}"
    "pre{margin:0;white-space:pre-wrap;overflow-wrap:anywhere}\n"
    "details{margin-top:12px;border-top:1px solid var(--line);padding-top:8px}summary{cursor:pointer;color:var(--soft);"
    "font-size:13px}.scroll{overflow-x:auto;max-height:420px;margin-top:8px}"
    ":focus-visible{outline:2px solid var(--c0);outline-offset:2px;border-radius:2px}\n"
    "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;width:100%}"
    "th,td{padding:4px 10px 4px 0;text-align:left;border-bottom:1px solid var(--grid);vertical-align:top}"
    "th{color:var(--soft);font-weight:500}"
    ".n{text-align:right;white-space:nowrap}td.name{overflow-wrap:anywhere;min-width:90px}"
    ".best{font-weight:700}\n"
    ".samples{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(128px,28%),1fr));gap:16px 12px}"
    ".samples figure{margin:0;min-width:0}.samples img{width:100%;aspect-ratio:1;object-fit:contain;"
    "background:var(--grid);border-radius:4px;display:block}.samples img.pixels{image-rendering:pixelated}"
    ".samples.pairs{grid-template-columns:repeat(auto-fill,minmax(min(220px,45%),1fr))}"
    ".samples .masked{display:grid;grid-template-columns:1fr 1fr;gap:0 2px}.masked figcaption{grid-column:1/-1}"
    ".samples figcaption{font-size:13px;line-height:1.35;margin-top:6px;overflow-wrap:anywhere}"
    ".key{display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px}"
    ".legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:13px;margin:0 0 8px;padding:0;list-style:none}"
    ".legend li{overflow-wrap:anywhere;min-width:0}\n"
    "@media(min-width:860px){section{padding:16px}header{padding:0}main{grid-template-columns:repeat(2,minmax(0,1fr));"
    "padding-left:24px;padding-right:24px}"
    "section.half{grid-column:auto}}\n"
    "@media print{section{break-inside:avoid}}\n";

/* Returns the bytes of the character at `at`, or 0 if they are not UTF-8. */
static int character_bytes(const char *at)
{
    char one[5] = { 0 };
    for (int bytes = 1; bytes <= 4 && at[bytes - 1]; bytes++) {
        one[bytes - 1] = at[bytes - 1];
        if (text_is_utf8(one)) return bytes;
    }
    return 0;
}

static int character_count(const char *text)
{
    int count = 0;
    for (int bytes; *text; count++) text += (bytes = character_bytes(text)) ? bytes : 1;
    return count;
}

void page_text_cut(struct text *page, const char *text, int characters)
{
    const bool cut = character_count(text) > characters;
    for (int i = 0; *text && i < characters; i++) {
        const int bytes = character_bytes(text);
        if (cut && i == characters - 1)
            text_append(page, "\xe2\x80\xa6");
        else if (bytes == 0)
            text_append(page, "\xef\xbf\xbd");
        else if (strchr("&<>\"'", *text))
            text_append(page, "&#%d;", *text);
        else if ((unsigned char)*text < 0x20 || *text == 0x7f)
            text_append(page, " ");
        else
            text_append(page, "%.*s", bytes, text);
        text += bytes ? bytes : 1;
    }
}

void page_text(struct text *page, const char *text)
{
    page_text_cut(page, text, character_count(text) + 1);
}

void page_style(struct text *page)
{
    text_append(page, "<style>\n%s</style>\n", style);
}

void page_begin(struct text *page, const char *title, int refresh)
{
    text_append(page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        "img-src data:\">\n<link rel=\"icon\" href=\"data:,\">\n");
    if (refresh) text_append(page, "<meta http-equiv=\"refresh\" content=\"%d\">\n", refresh);
    text_append(page, "<title>");
    page_text(page, title);
    text_append(page, "</title>\n");
    page_style(page);
    text_append(page, "<style>\n%s</style>\n</head>\n<body>\n<main>\n", page_rules);
}

void page_end(struct text *page)
{
    text_append(page, "</main>\n</body>\n</html>\n");
}

void page_section(struct text *page, const char *heading, bool half)
{
    text_append(page, "<section%s>\n<h2>", half ? " class=\"half\"" : "");
    page_text(page, heading);
    text_append(page, "</h2>\n");
}

void page_section_end(struct text *page)
{
    text_append(page, "</section>\n");
}

void page_table(struct text *page, const char *summary, const char *headings)
{
    text_append(page, "<details><summary>");
    page_text(page, summary);
    text_append(page, "</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"");
    page_text(page, summary);
    text_append(page, "\"><table><thead><tr>");
    for (const char *at = headings; *at; at += *at == '|') {
        const bool number = *at == '#';
        at += number;
        const size_t length = strcspn(at, "|");
        text_append(page, "<th scope=\"col\"%s>%.*s</th>", number ? " class=\"n\"" : "", (int)length, at);
        at += length;
    }
    text_append(page, "</tr></thead><tbody>\n");
}

void page_table_end(struct text *page)
{
    text_append(page, "</tbody></table></div></details>\n");
}

void page_json(struct text *page, const char *json)
{
    text_append(page, "<script type=\"application/json\" id=\"tutti\">");
    while (*json) {
        const size_t plain = strcspn(json, "<");
        text_append(page, "%.*s", (int)plain, json);
        json += plain;
        if (!*json) break;
        text_append(page, "\\u003c");
        json++;
    }
    text_append(page, "</script>\n");
}

const char *format_count(double value, char *buffer, size_t size)
{
    if (value < 1e4)
        number_print(buffer, size, "%.0f", value);
    else if (value < 1e6)
        number_print(buffer, size, "%d,%03d", (int)value / 1000, (int)value % 1000);
    else
        number_print(buffer, size, "%.3g %c", value < 1e9 ? value / 1e6 : value / 1e9, value < 1e9 ? 'M' : 'G');
    return buffer;
}

const char *format_seconds(double seconds, char *buffer, size_t size)
{
    const long long whole = llround(seconds);
    if (!(seconds >= 0) || seconds > 1e12)
        number_print(buffer, size, "unknown");
    else if (seconds < 60)
        number_print(buffer, size, "%.1f s", seconds);
    else if (whole < 3600)
        number_print(buffer, size, "%lld:%02lld min", whole / 60, whole % 60);
    else
        number_print(buffer, size, "%lld:%02lld h", whole / 3600, whole / 60 % 60);
    return buffer;
}

const char *format_bytes(double bytes, char *buffer, size_t size)
{
    if (bytes < (double)(1 << 30))
        number_print(buffer, size, "%.*f MiB", bytes < 10 * (1 << 20) ? 1 : 0, bytes / (1 << 20));
    else
        number_print(buffer, size, "%.1f GiB", bytes / (1 << 30));
    return buffer;
}
