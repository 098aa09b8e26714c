/// Tests `stagecraft schedule compare`: builders and files side by side, in the same units.

#include <sstream>

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

Json compared(const std::string& line) {
  const CommandResult result = run_schedule_line("compare " + line + " --json");
  CAPTURE(line, result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out).at("schedules");
}

}  // namespace

TEST_CASE("compare shows every builder, or why it has no figures", "[tools][schedule]") {
  const Json list = compared("all --devices 4 --microbatches 8");
  REQUIRE(list.size() == builders().size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    CAPTURE(builders()[i].name);
    CHECK(list[i].at("schedule") == builders()[i].name);
    REQUIRE(list[i].contains("makespan"));
    CHECK(list[i].at("makespan") >= 24);  // the work of one device
  }
  for (const Json& line : compared("all --devices 3 --microbatches 4")) {
    const bool odd = line.at("schedule") == "chimera";
    CHECK(line.contains("reason") ==
          (odd || line.at("schedule") == "dualpipe" || line.at("schedule") == "dualpipev" ||
           line.at("schedule") == "hanayo"));
  }
}

TEST_CASE("compare writes a page with every figure and reason", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string odd = folder.write("a<b.txt", "0F0 0B0\n");
  const std::string page = folder.path() + "/page.html";
  const CommandResult result = run_schedule({"compare",
                                             "1f1b",
                                             "interleaved",
                                             odd,
                                             "--devices",
                                             "4",
                                             "--microbatches",
                                             "8",
                                             "--html",
                                             page});
  CAPTURE(result.err);
  CHECK(result.exit_code == 0);
  CHECK(result.out.empty());
  const std::string text = read_text_file(page);
  CHECK_THAT(text, ContainsSubstring("<h1>Schedules compared, 4 devices, microbatches: 8</h1>"));
  CHECK_THAT(text, ContainsSubstring("<tr><td>1f1b</td>"));
  CHECK_THAT(text, ContainsSubstring("<td>33<span class=\"bar\" style=\"width:100.0%\">"));
  CHECK_THAT(text, ContainsSubstring("<td>28.5<span class=\"bar\" style=\"width:86.4%\">"));
  CHECK_THAT(text, ContainsSubstring("a&lt;b.txt: has 1 x 1 devices and microbatches"));
  CHECK_THAT(text, !ContainsSubstring("a<b"));
  CHECK(run_schedule(
            {"compare", "1f1b", "--devices", "2", "--microbatches", "2", "--html", page, "--json"})
            .exit_code == 2);
}

TEST_CASE("compare has one unit for one and for several stages per device", "[tools][schedule]") {
  const Json list = compared("1f1b interleaved --devices 4 --microbatches 8 --chunks 4");
  CHECK(list[0].at("makespan") == 33);
  CHECK(list[1].at("stages") == 16);
  CHECK(list[1].at("makespan") == 24 + 9 / 4.0);
}

TEST_CASE("compare takes files, and their size where none is said", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string first = folder.write("first.txt", "0F0 0F1 . 0B0 . 0B1\n. 1F0 1B0 1F1 1B1 .\n");
  const Json list = compared(first + " gpipe");
  CHECK(list[0].at("makespan") == 9);
  CHECK(list[0].at("peak_in_flight") == 2);
  CHECK(list[1].at("makespan") == 9);
  const std::string bad = folder.write("bad.txt", "0F0 0F1 0B0\n1F0 1B0 1F1 1B1\n");
  const std::string other = folder.write("other.txt", "0F0 0B0\n");
  const Json reasons = compared(first + " " + bad + " " + other);
  CHECK_THAT(reasons[1].at("reason").get<std::string>(), ContainsSubstring("violations"));
  CHECK_THAT(reasons[2].at("reason").get<std::string>(), ContainsSubstring("1 x 1"));
  CHECK(run_schedule({"compare", bad, "--devices", "2", "--microbatches", "2"}).exit_code == 1);
}

TEST_CASE("compare knows bytes where the costs do", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string costs =
      folder.write("c.json",
                   R"({"version": 1, "stages": {"usual": {"F": 4, "B": 8, "I": 4, "W": 4},
          "each": [{"stage": 0, "fixed": 1024, "activations": 512},
                   {"stage": 1, "fixed": 1024, "activations": 512}]}})");
  const Json list =
      compared("1f1b zb-auto interleaved --devices 2 --microbatches 4 --costs " + costs);
  CHECK(list[0].at("makespan") == 4 * 15);
  CHECK(list[0].at("peak_bytes") == 2048);
  CHECK(list[1].at("makespan") < 4 * 15);
  CHECK(list[2].at("makespan") == 4 * 13.5);
  const CommandResult text =
      run_schedule_line("compare 1f1b --devices 2 --microbatches 4 --costs " + costs);
  CHECK_THAT(text.out, ContainsSubstring("peak bytes") && ContainsSubstring("2.0 KiB"));
}

TEST_CASE("compare halves a backward of which the costs say the whole alone", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string whole = folder.write(
      "whole.json", R"({"version": 1, "stages": {"usual": {"F": 0.010, "B": 0.020}}})");
  const std::string all = folder.write(
      "all.json",
      R"({"version": 1, "stages": {"usual": {"F": 0.010, "B": 0.020, "I": 0.010, "W": 0.010}}})");
  const std::string line = "1f1b zb-h1 --devices 4 --microbatches 8 --costs ";
  CHECK(compared(line + whole) == compared(line + all));
  CHECK_THAT(run_schedule_line("compare " + line + whole).err,
             ContainsSubstring("lacks I and W: each is half of B"));
  CHECK(run_schedule_line("compare " + line + all).err.empty());
}

TEST_CASE("compare takes the durations of simulate", "[tools][schedule][costs]") {
  const std::string job = "1f1b interleaved zb-h1 --devices 4 --microbatches 8 ";
  const Json usual = compared(job);
  const Json twice = compared(job + "--f 2 --b 4 --i 2 --w 2");
  for (std::size_t i = 0; i < usual.size(); ++i) {
    CHECK(twice[i].at("makespan") == 2 * usual[i].at("makespan").get<double>());
  }
  const Json late = compared("1f1b --devices 4 --microbatches 8 --latency 0.5");
  CHECK(late[0].at("makespan") ==
        Json::parse(run_schedule_line("make 1f1b --devices 4 --microbatches 8 | simulate - "
                                      "--latency 0.5 --json")
                        .out)
            .at("makespan"));
}

TEST_CASE("compare writes CSV with a line for each", "[tools][schedule]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("a,\"b.txt", "0F0 0B0\n");
  const CommandResult result =
      run_schedule({"compare", file, "chimera", "--microbatches", "1", "--devices", "1", "--csv"});
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, ContainsSubstring("chimera: "));
  CHECK_THAT(result.out, ContainsSubstring("a,\"\"b.txt\",1,3,0,1,1,0,0\nchimera,,,,,,,\n"));
}

TEST_CASE("compare says what is wrong with its words", "[tools][schedule][bad-input]") {
  const auto refused = [](const std::string& words, const std::vector<std::string>& parts) {
    CAPTURE(words);
    check_message(run_schedule_line("compare" + words), 2, parts);
  };
  refused("", {"NAMES"});
  refused(" 1f1b", {"--devices P", "'1f1b'"});
  refused(" 1f1b --devices 4", {"--microbatches M"});
  refused(" 1f1 --devices 4 --microbatches 8", {"'1f1'", "did you mean 1f1b?"});
  refused(" gpipe none.txt --devices 4 --microbatches 8",
          {"NAMES expects a readable schedule file or one of gpipe,", "found 'none.txt'"});
  refused(" 1f1b --devices 4 --microbatches 8 --json --csv", {"one of --json, --csv and --html"});
  refused(" 1f1b --devices 0 --microbatches 8", {"--devices", "'0'"});
  refused(" 1f1b --devices 4 --microbatches 8 --costs /none", {"--costs", "/none"});
  refused(" 1f1b --devices 4 --microbatches 8 --f 2 --costs c.json", {"--costs or --f", "both"});
  refused(" 1f1b --devices 4 --microbatches 8 --f 1e308", {"more than any number holds"});
}

}  // namespace stagecraft::tests
