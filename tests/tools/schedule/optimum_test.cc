/// Checks that the table of docs/builders.md that compares builders with the optimum has the
/// figures of `compare` and `search`, and the lengths of the builders' sources.

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Json = nlohmann::json;

/// Holds how a builder is judged: the search with the same freedom, and the sources of the builder.
struct Judged {
  std::string search;  ///< further words
  std::vector<std::string> sources;
  std::string published = "-";
};

const std::map<std::string, Judged>& judged() {
  const std::string wave = "--chunks 2 --placement wave";
  const std::string replicas = "--placement replicas";
  static const std::map<std::string, Judged> kJudged{
      {"gpipe", {"", {"gpipe"}}},
      {"1f1b", {"", {"one_f_one_b", "parts/alternating_row"}, "29"}},
      {"interleaved", {"--chunks 2", {"interleaved", "parts/alternating_row"}, "38"}},
      {"looped-bfs", {"--chunks 2", {"looped_bfs"}}},
      {"kfkb", {"", {"kfkb"}}},
      {"zb-h1", {"--split", {"zero_bubble/zb_h1", "parts/alternating_row"}}},
      {"zb-h2", {"--split", {"zero_bubble/zb_h2", "parts/alternating_row"}}},
      {"zb-v", {wave + " --split", {"zero_bubble/zb_v"}}},
      {"interleaved-zb", {"--chunks 2 --split", {"interleaved_zb", "parts/alternating_row"}}},
      {"zb-auto", {"--split", {"zero_bubble/zb_auto"}}},
      {"dualpipe",
       {replicas + " --split", {"bidirectional/dualpipe", "bidirectional/dual_pipe_row"}}},
      {"dualpipev",
       {wave + " --split", {"bidirectional/dualpipev", "bidirectional/dual_pipe_row"}, "63"}},
      {"chimera", {replicas, {"bidirectional/chimera", "parts/time_slots"}}},
      {"hanayo", {wave, {"bidirectional/hanayo", "parts/time_slots"}}},
      {"pfeife", {"", {"pfeife", "parts/alternating_row"}}}};
  return kJudged;
}

Json answered(const std::string& line) {
  const CommandResult result = run_schedule_line(line + " --devices 4 --microbatches 8 --json");
  CAPTURE(line, result.err);
  REQUIRE(result.exit_code == 0);
  return Json::parse(result.out);
}

/// Returns what the search proves under a cap.
std::string optimum(const Judged& judged, int cap) {
  const Json answer = answered(fmt::format("search --cap {} {}", cap, judged.search));
  REQUIRE(answer.at("optimal") == true);
  return fmt::format("{:g}", answer.at("makespan").get<double>());
}

std::string lines_of(const Judged& judged) {
  std::string text;
  for (const std::string& source : judged.sources) {
    const std::string code =
        read_text_file(fmt::format("{}/scheduler/builders/{}.cc", STAGECRAFT_SOURCE_DIR, source));
    text += fmt::format("{}{}", text.empty() ? "" : " + ", std::ranges::count(code, '\n'));
  }
  return text;
}

}  // namespace

TEST_CASE("docs/builders.md compares every builder with the optimum that search proves",
          "[tools][docs]") {
  constexpr int kAnyMemory = 16;  // 8 microbatches of 2 stages
  const std::string page = read_text_file(STAGECRAFT_SOURCE_DIR "/docs/builders.md");
  const std::size_t table = page.find("## Builders against the optimum");
  REQUIRE(table != std::string::npos);
  for (const BuilderInfo& builder : builders()) {
    if (builder.takes_graph) {
      continue;  // on a chain they equal other builders
    }
    const std::string name(builder.name);
    CAPTURE(name);
    const Json figures = answered("compare " + name).at("schedules").at(0);
    REQUIRE(judged().contains(name));
    const Judged& how = judged().at(name);
    const std::string line =
        fmt::format("\n| `{}` | {:g} | {:.1f}% | {} | {:g} | {} | {} | {} | {} |\n",
                    name,
                    figures.at("makespan").get<double>(),
                    100 * figures.at("bubble_fraction").get<double>(),
                    figures.at("peak_in_flight").get<int>(),
                    figures.at("peak_microbatches").get<double>(),
                    optimum(how, figures.at("peak_in_flight").get<int>()),
                    optimum(how, kAnyMemory),
                    lines_of(how),
                    how.published);
    CHECK_THAT(page.substr(table), Catch::Matchers::ContainsSubstring(line));
  }
}

}  // namespace stagecraft::tests
