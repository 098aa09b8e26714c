/// Tests `stagecraft schedule show`: grids, pages, and pictures for pages and papers.

#include <algorithm>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

constexpr const char* kShownSchedule =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";

// 0B0 is in the column of 1B0, which it needs.
constexpr const char* kShownArray =
    "0F0 0F1 0B0 .   .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";
constexpr const char* kShownList =
    "@form list\n"
    "0F0 0B0 0F1 0B1\n"
    "1F0 1F1 1B0 1B1\n";

bool has_program(const std::string& name) {
  return run_command({"sh", "-c", "command -v " + name}).exit_code == 0;
}

TEST_CASE("show draws a picture at its durations, width, title and colors",
          "[tools][schedule][show]") {
  const auto drawn = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"show", "-", "--svg", "-"});
    const CommandResult result = run_schedule(words, kShownSchedule);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const std::string usual = drawn({});
  CHECK_THAT(usual,
             ContainsSubstring(">2 devices, 2 stages, 2 microbatches</text>") &&
                 ContainsSubstring("0B0 on row 0, 4 to 6"));
  CHECK_THAT(drawn({"--f", "3", "--b", "5"}), ContainsSubstring("0B0 on row 0, 11 to 16"));
  CHECK_THAT(drawn({"--latency", "1"}), ContainsSubstring("0B0 on row 0, 6 to 8"));
  CHECK_THAT(drawn({"--title", "A <b>"}), ContainsSubstring(">A &lt;b&gt;</text>"));
  CHECK_THAT(drawn({"--title", ""}), !ContainsSubstring("class=\"title\""));
  CHECK_THAT(drawn({"--width", "605"}), ContainsSubstring("width=\"605\""));
  CHECK_THAT(drawn({"--width", "3.25in"}), ContainsSubstring("width=\"312\""));
  CHECK_THAT(drawn({"--width", "12.7cm"}), ContainsSubstring("width=\"480\""));
  CHECK_THAT(drawn({"--no-legend"}), !ContainsSubstring("class=\"swatch\""));
  CHECK_THAT(drawn({"--no-idle"}), !ContainsSubstring("% idle"));
  CHECK_THAT(drawn({"--no-labels"}), !ContainsSubstring(">0F0<"));
  for (const char* by : {"kind", "chunk", "microbatch"}) {
    CHECK(drawn({"--color-by", by}) != usual);
  }
  CHECK(drawn({"--color-by", "stage"}) == usual);
  CHECK_THAT(run_schedule({"show", "-", "--html", "-", "--title", "Mine"}, kShownSchedule).out,
             ContainsSubstring("<title>Mine</title>"));
  CHECK_THAT(run_schedule({"show", "-", "--html", "-", "--title", ""}, kShownSchedule).out,
             ContainsSubstring("<title></title>"));
}

TEST_CASE("options of pictures say what they expect", "[tools][schedule][show]") {
  const auto shown = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"show", "-"});
    return run_schedule(words, kShownSchedule);
  };
  for (const char* width : {"10", "5cm", "2in", "8.4 cm", "8mm", "nan", "cm"}) {
    check_message(shown({"--svg", "-", "--width", width}),
                  2,
                  {"--width expects 240 to 16000 pixels", "such as 8.4cm or 3.25in"});
  }
  check_message(shown({"--no-legend"}),
                2,
                {"--no-legend applies to pictures; add --svg, --pdf, --png or --tikz FILE"});
  check_message(shown({"--svg", "-", "--width", "wide"}), 2, {"--width", "wide"});
  check_message(shown({"--svg", "-", "--color-by", "taste"}),
                2,
                {"--color-by expects stage, kind, chunk or microbatch, found 'taste'"});
  check_message(shown({"--width", "605"}), 2, {"--width applies to pictures; add --svg, --pdf"});
  for (const char* option : {"--no-legend", "--no-idle", "--no-labels"}) {
    check_message(
        shown({"--html", "-", option}),
        2,
        {std::string(option) + " applies to pictures; add --svg, --pdf, --png or --tikz FILE"});
  }
  check_message(
      shown({"--html", "-", "--color-by", "kind"}), 2, {"--color-by applies to pictures"});
  CHECK(shown({"--html", "-", "--svg", "/dev/null", "--width", "605"}).exit_code == 0);
  check_message(shown({"--svg", "-", "--f", "-1"}), 2, {"--f"});
}

TEST_CASE("names too small to read at the width asked for are noted", "[tools][schedule][show]") {
  const std::string wide = run_schedule_line("make 1f1b --devices 4 --microbatches 8").out;
  const auto notes = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"show", "-"});
    const CommandResult result = run_schedule(words, wide);
    CHECK(result.exit_code == 0);
    return result.err;
  };
  for (const char* picture : {"--svg", "--tikz"}) {
    CHECK_THAT(notes({picture, "-", "--width", "8.4cm"}),
               StartsWith("note: at --width 8.4cm the names in the boxes are ") &&
                   ContainsSubstring("smaller than 5 pt") && ContainsSubstring("--no-labels"));
    CHECK(notes({picture, "-", "--width", "8.4cm", "--no-labels"}).empty());
    CHECK(notes({picture, "-", "--width", "40cm"}).empty());
    CHECK(notes({picture, "-"}).empty());
  }
}

TEST_CASE("show writes PDF and PNG of the size asked for", "[tools][schedule][show]") {
  if (!has_program("rsvg-convert")) {
    SKIP("there is no rsvg-convert on this machine; tools/setup installs it");
  }
  const TemporaryFolder folder;
  const std::string pdf = folder.path() + "/x.pdf";
  const std::string png = folder.path() + "/x.png";
  const CommandResult result =
      run_schedule({"show", "-", "--pdf", pdf, "--png", png, "--width", "640"}, kShownSchedule);
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK_THAT(read_text_file(pdf), StartsWith("%PDF-") && ContainsSubstring("%%EOF"));
  const std::string picture = read_text_file(png);
  REQUIRE(picture.size() > 24);
  CHECK(picture.substr(0, 4) == "\x89PNG");
  // Bytes 16 to 19 are the width, which has two pixels for one.
  CHECK(static_cast<unsigned char>(picture[18]) * 256 + static_cast<unsigned char>(picture[19]) ==
        1280);
}

TEST_CASE("show writes a TikZ picture that TeX sets", "[tools][schedule][show]") {
  const TemporaryFolder folder;
  const std::string tikz = folder.path() + "/picture.tex";
  const CommandResult result = run_schedule(
      {"show", "-", "--tikz", tikz, "--title", "50% of $x_1^2$ & {#} \\end ~"}, kShownSchedule);
  CHECK(result.exit_code == 0);
  CHECK_THAT(read_text_file(tikz), ContainsSubstring("\\begin{tikzpicture}"));
  if (!has_program("pdflatex")) {
    SKIP("there is no pdflatex on this machine; apt install texlive-pictures would run it");
  }
  (void)folder.write("paper.tex",
                     "\\documentclass{article}\n\\usepackage{tikz}\n\\begin{document}\n"
                     "\\noindent\\input{picture.tex}\n\\end{document}\n");
  const CommandResult paper = run_command(
      {"pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"}, folder.path());
  CHECK(paper.exit_code == 0);
  CHECK_THAT(paper.out, ContainsSubstring("Output written") && !ContainsSubstring("Overfull"));
}

}  // namespace
TEST_CASE("show marks what does nothing in all its drawings", "[tools][schedule][surplus]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("frozen", std::string("@frozen 0\n") + kShownSchedule);
  CHECK_THAT(run_schedule({"show", file}).out,
             ContainsSubstring("(0B1)") && ContainsSubstring("in parentheses, 2 tasks do nothing"));
  CHECK_THAT(run_schedule({"show", file, "--svg", "-"}).out,
             ContainsSubstring("in empty boxes, 2 tasks do nothing"));
  CHECK_THAT(run_schedule({"show", file, "--html", "-"}).out,
             ContainsSubstring(R"("surplus":{"0":"BIW","1":"I"})"));
}

TEST_CASE("show draws a list in columns, and marks what is wrong", "[tools][schedule][show]") {
  const CommandResult good =
      run_schedule({"show", "-"}, "@form list\n0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  CHECK(good.exit_code == 0);
  CHECK(good.out == run_schedule({"show", "-"}, kShownSchedule).out);
  const CommandResult bad = run_schedule({"show", "-"}, kShownList);
  CHECK(bad.exit_code == 0);
  CHECK_THAT(bad.out, ContainsSubstring("[0B0]") && ContainsSubstring("V29"));
}

TEST_CASE("show writes a picture and a page", "[tools][schedule][show]") {
  const TemporaryFolder folder;
  const std::string svg = folder.path() + "/x.svg";
  const std::string html = folder.path() + "/x.html";
  const CommandResult result =
      run_schedule({"show", "-", "--svg", svg, "--html", html}, kShownSchedule);
  CHECK(result.exit_code == 0);
  CHECK(result.out.empty());
  CHECK_THAT(read_text_file(svg), ContainsSubstring("<svg") && ContainsSubstring("1B1"));
  CHECK_THAT(read_text_file(html), ContainsSubstring("<!") && ContainsSubstring("1B1"));
  CHECK_THAT(read_text_file(html), ContainsSubstring("<title>Schedule</title>"));
  CHECK_THAT(run_schedule({"show", "-", "--svg", "-"}, kShownArray).out, ContainsSubstring("V22"));
  CHECK_THAT(run_schedule({"show", "-", "--html", "-"}, kShownList).out, ContainsSubstring("V29"));
}

TEST_CASE("show draws several schedules one above the other", "[tools][schedule][show]") {
  const TemporaryFolder folder;
  const auto made = [&](const std::string& line, const std::string& name) {
    const CommandResult result =
        run_schedule_line("make " + line + " --devices 2 --microbatches 4");
    REQUIRE(result.exit_code == 0);
    return folder.write(name, result.out);
  };
  const std::string plain = made("1f1b", "plain.txt");
  const std::string wave = made("zb-v", "wave.txt");
  const CommandResult svg = run_schedule({"show", plain, wave, "--svg", "-"});
  CHECK(svg.exit_code == 0);
  // A stage of the second is half of a device's share of the model.
  CHECK_THAT(svg.out,
             ContainsSubstring(">plain</text>") && ContainsSubstring(">wave</text>") &&
                 ContainsSubstring("0F0 on row 0 of plain, 0 to 1") &&
                 ContainsSubstring("0F0 on row 0 of wave, 0 to 0.5") &&
                 !ContainsSubstring("class=\"title\""));
  CHECK_THAT(run_schedule({"show", plain, wave, "--tikz", "-"}).out,
             ContainsSubstring("{plain}") && ContainsSubstring("{wave}"));
  CHECK_THAT(run_schedule({"show", plain, wave}).out,
             StartsWith("plain\n") && ContainsSubstring("\n\nwave\n"));
  // Equal names are told apart by their folders.
  const TemporaryFolder other;
  const std::string same = other.write("plain.txt", kShownSchedule);
  CHECK_THAT(run_schedule({"show", plain, same}).out, StartsWith(plain + "\n"));
  check_message(
      run_schedule({"show", plain, wave, "--html", "-"}),
      2,
      {"--html expects one schedule, found 2; --svg, --pdf, --png and --tikz draw several"});
  const std::string wrong = folder.write("wrong.txt", kShownArray);
  CHECK(run_schedule({"show", plain, wrong, "--svg", "-"}).exit_code == 1);
}

TEST_CASE("a picture and a page cannot be one file", "[tools][schedule][show]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/x";
  check_message(run_schedule({"show", "-", "--svg", file, "--html", file}, kShownSchedule),
                2,
                {"expect two files", "'" + file + "' twice"});
}

TEST_CASE("a large schedule is shown in part, and told in few lines", "[tools][schedule][show]") {
  const CommandResult made = run_schedule_line("make gpipe --devices 200 --microbatches 500");
  REQUIRE(made.exit_code == 0);
  for (const char* command : {"show", "simulate"}) {
    CAPTURE(command);
    const CommandResult result = run_schedule({command, "-"}, made.out);
    CHECK(result.exit_code == 0);
    CHECK(std::count(result.out.begin(), result.out.end(), '\n') < 300);
    CHECK_THAT(result.out, ContainsSubstring("not shown"));
  }
  check_message(run_schedule({"show", "-", "--svg", "-"}, made.out), 2, {"100000 cells"});
}

}  // namespace stagecraft::tests
