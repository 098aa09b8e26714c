/// Tests `stagecraft dag show`: nodes, streams and lists of strategies and schedules.
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"
#include "stagecraft/tools/dag/dag.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using nlohmann::json;
using Words = std::vector<std::string>;

constexpr const char* kTwoByTwo = R"(# two pipelines of two stages
split     {} dim=MB n=2
place     {PP:0} on [0,2]
place     {PP:1} on [1,3]
replicate {PP:0} on [0,2] reduce_stream=dp
replicate {PP:1} on [1,3] reduce_stream=dp
)";

CommandResult show(Words words, const std::string& text) {
  words.insert(words.begin(), {"show", "-"});
  return run_in_test(&tools::dag, words, text);
}

json shown(const std::string& text, Words words = {}) {
  words.emplace_back("--json");
  const CommandResult result = show(std::move(words), text);
  CAPTURE(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(result.out);
}

std::map<std::string, int> kinds_of(const json& dag) {
  std::map<std::string, int> kinds;
  for (const json& node : dag.at("nodes")) {
    ++kinds[node.at("kind")];
  }
  return kinds;
}

std::string schedule_of(const std::string& words) {
  return run_schedule_line("make " + words).out;
}

}  // namespace

TEST_CASE("a pipeline of two stages has the nodes that were counted by hand", "[tools][dag]") {
  const json dag = shown(schedule_of("1f1b --devices 2 --microbatches 2"));
  CHECK(kinds_of(dag) == std::map<std::string, int>{{"forward", 4},
                                                    {"backward", 4},
                                                    {"send", 4},
                                                    {"receive", 4},
                                                    {"update", 2},
                                                    {"vote", 2}});
  const json halves = shown(schedule_of("zb-h1 --devices 2 --microbatches 2"));
  CHECK(kinds_of(halves).at("input") == kinds_of(halves).at("weight"));
}

TEST_CASE("copies of two stages make a sum for each stage, on the stream of the strategy",
          "[tools][dag]") {
  const json dag = shown(kTwoByTwo);
  CHECK(kinds_of(dag).at("all_reduce") == 2);
  for (const json& node : dag.at("nodes")) {
    if (node.at("kind") == "all_reduce") {
      CHECK(node.at("stream") == "dp");
      CHECK(node.at("ranks") == (node.at("stage") == 0 ? json{0, 2} : json{1, 3}));
    }
  }
  const CommandResult people = show({}, kTwoByTwo);
  for (const char* part :
       {"2 stages, 2 microbatches", "ranks [0,2]", "dp", "all_reduce", "issues"}) {
    CHECK_THAT(people.out, ContainsSubstring(part));
  }
}

TEST_CASE("copies in a schedule keep its numbers, and sum over the ranks of all copies",
          "[tools][dag]") {
  const std::string chimera = schedule_of("chimera --devices 2 --microbatches 4");
  const CommandResult people = show({}, chimera);
  for (const char* part : {"compute       0F0, 3F0, 3B0, 0B0, 0F1, 3F1, 3B1, 0B1, vote",
                           "compute       2F0, 1F0, 1B0, 2B0, 2F1, 1F1, 1B1, 2B1, vote",
                           "send 2F1 to stage 3",
                           "reduce        all_reduce of stages 1, 3 over [0,1], all_reduce of "
                           "stages 0, 2 over [0,1]"}) {
    CHECK_THAT(people.out, ContainsSubstring(part));
  }
  for (const json& node : shown(chimera).at("nodes")) {
    if (node.at("kind") == "all_reduce") {
      CHECK(node.at("over") == json{0, 1});
      CHECK(node.at("ranks").size() == 1);
    } else if (node.at("kind") == "forward") {
      CHECK(node.at("microbatch") <= 1);
    }
  }
  const CommandResult page = show({"--html", "-"}, chimera);
  CHECK_THAT(page.out, ContainsSubstring("all_reduce of stages 0, 2 over [0,1]"));
}

TEST_CASE("gathers of sharded parameters say for which pass they are", "[tools][dag]") {
  const CommandResult people =
      show({},
           "split {} dim=MB n=2\nplace {PP:0} on [0,1]\nreplicate {PP:0} on [0,1] shard_params\n"
           "order [{PP:0,MB:0,PASS:F}] [{PP:0,MB:1,PASS:F}] [{PP:0,MB:1,PASS:B}] "
           "[{PP:0,MB:0,PASS:B}]\n");
  CAPTURE(people.err);
  REQUIRE(people.exit_code == 0);
  for (const char* part : {"\n  reduce_scatter  ",
                           "\n  forward         2\n",
                           "\n  compute         0F0",
                           "all_gather of stage 0 for F0",
                           "reduce_scatter of stage 0 after B"}) {
    CHECK_THAT(people.out, ContainsSubstring(part));
  }
}

TEST_CASE("one stage is no plural", "[tools][dag]") {
  CHECK_THAT(show({}, "place {PP:0} on [0]\n").out,
             Catch::Matchers::StartsWith("1 stage, 1 microbatch: 4 nodes, 1 edge of data, "));
}

TEST_CASE("every list issues each of its nodes once, after what it needs on these ranks",
          "[tools][dag]") {
  for (const BuilderInfo& builder : builders()) {
    if (builder.takes_graph) {
      continue;
    }
    const CommandResult made =
        run_schedule_line(fmt::format("make {} --devices 4 --microbatches 8", builder.name));
    CAPTURE(builder.name, made.err);
    REQUIRE(made.exit_code == 0);
    const json dag = shown(made.out);
    std::vector<int> position(dag.at("nodes").size(), -1), list_of(dag.at("nodes").size(), -1);
    std::size_t issued = 0;
    for (std::size_t l = 0; l < dag.at("lists").size(); ++l) {
      int at = 0;
      for (const int node : dag.at("lists").at(l).at("nodes")) {
        CHECK(position.at(static_cast<std::size_t>(node)) == -1);
        position.at(static_cast<std::size_t>(node)) = at++;
        list_of.at(static_cast<std::size_t>(node)) = static_cast<int>(l);
        ++issued;
      }
    }
    CHECK(issued == dag.at("nodes").size());
    bool in_order = true;
    for (const json& edge : dag.at("edges")) {
      const auto from = edge.at("from").get<std::size_t>(), to = edge.at("to").get<std::size_t>();
      in_order = in_order && (list_of[from] != list_of[to] || position[from] < position[to]);
    }
    CHECK(in_order);
  }
}

TEST_CASE("pictures and pages are written to files, text and JSON to the output", "[tools][dag]") {
  const TemporaryFolder folder;
  const std::string svg = folder.path() + "/dag.svg", html = folder.path() + "/dag.html",
                    out = folder.path() + "/dag.json";
  const CommandResult pictures = show({"--svg", svg, "--html", html}, kTwoByTwo);
  CAPTURE(pictures.err);
  REQUIRE(pictures.exit_code == 0);
  CHECK(pictures.out.empty());
  CHECK_THAT(read_text_file(svg),
             ContainsSubstring("<svg ") && ContainsSubstring("id=\"node-21\"") &&
                 ContainsSubstring("<title>stream dp</title>"));
  CHECK_THAT(read_text_file(html),
             ContainsSubstring("<!doctype html>") && ContainsSubstring("all_reduce of stage 1"));
  const CommandResult all = show({"--svg", svg, "--json", "-o", out}, kTwoByTwo);
  CHECK(all.exit_code == 0);
  CHECK(json::parse(read_text_file(out)) == shown(kTwoByTwo));
  for (const json& node : shown(kTwoByTwo).at("nodes")) {
    CHECK_FALSE(node.contains("operators"));
  }
}

TEST_CASE("the name of a file is text in its page", "[tools][dag]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("<b>&.strategy", kTwoByTwo);
  const CommandResult page = run_in_test(&tools::dag, Words{"show", file, "--html", "-"});
  CAPTURE(page.err);
  REQUIRE(page.exit_code == 0);
  CHECK(page.out.find("<b>") == std::string::npos);
  CHECK_THAT(page.out, ContainsSubstring("&lt;b&gt;&amp;.strategy</title>"));
}

TEST_CASE("durations tell the time of a step, and what tasks hide", "[tools][dag]") {
  const std::string one = schedule_of("1f1b --devices 2 --microbatches 2");
  const json dag = shown(one, {"--f", "1", "--b", "2", "--latency", "0.5"});
  // 9 without transfers, and one of 0.5 in each direction on the longest path.
  CHECK(dag.at("makespan") == 10.0);
  double computing = 0;
  for (const json& node : dag.at("nodes")) {
    CHECK(node.at("end").get<double>() <= 10.0);
    computing += node.at("kind") == "forward" || node.at("kind") == "backward"
                     ? node.at("end").get<double>() - node.at("start").get<double>()
                     : 0.0;
  }
  CHECK(computing == 12.0);
  for (const json& list : dag.at("lists")) {
    CHECK(list.at("computing") == 6.0);
    CHECK(list.at("communicating") == 1.0);
    CHECK(list.at("hidden") == 0.5);  // one transfer of the two lies under a task
  }
  CHECK_FALSE(shown(one).contains("makespan"));
  CHECK_THAT(show({"--f", "1"}, one).out,
             ContainsSubstring("time of a step: 9\n") && ContainsSubstring("communicating"));
  CHECK_THAT(show({}, one).out, !ContainsSubstring("time of a step"));
  CHECK_THAT(show({"--exchange", "-1"}, one).err, ContainsSubstring("--exchange"));
  CHECK_THAT(show({"--f", "1", "--costs", "no.json"}, one).err, ContainsSubstring("found both"));
}

TEST_CASE("times that no number holds are refused, as simulate refuses them", "[tools][dag]") {
  const std::string one = schedule_of("1f1b --devices 2 --microbatches 2");
  for (const Words& words :
       {Words{"--f", "1e308"}, {"--f", "5e307"}, {"--f", "1", "--latency", "1e308"}}) {
    CAPTURE(words);
    const CommandResult result = show(words, one);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, ContainsSubstring("add up to more than any number holds"));
  }
  CHECK(shown(one, {"--f", "1e300"}).at("makespan").get<double>() >= 3e300);
}

TEST_CASE("costs of another number of stages are noted", "[tools][dag]") {
  const TemporaryFolder folder;
  const std::string costs = folder.write("c.json",
                                         R"({"version": 1,
          "stages": {"each": [{"stage": 0, "F": 1, "B": 2}, {"stage": 1, "F": 1}]}})");
  const auto errors = [&](const char* devices) {
    const std::string schedule =
        schedule_of(fmt::format("1f1b --devices {} --microbatches 2", devices));
    const CommandResult result = show({"--costs", costs}, schedule);
    CHECK(result.exit_code == 0);
    return result.err;
  };
  CHECK_THAT(errors("2"), !ContainsSubstring("stages, but the schedule has"));
  CHECK_THAT(errors("3"),
             ContainsSubstring("it has the times of 2 stages, but the schedule has 3 stages"));
  CHECK_THAT(errors("1"),
             ContainsSubstring("it has the times of 2 stages, but the schedule has 1 stage"));
}

TEST_CASE("microbatches can be given to a strategy without a split", "[tools][dag]") {
  const std::string places = "place {PP:0} on [0]\nplace {PP:1} on [1]\n";
  CHECK(shown(places).at("microbatches") == 1);
  CHECK(shown(places, {"--microbatches", "3"}).at("microbatches") == 3);
  CHECK(shown(kTwoByTwo, {"--microbatches", "2"}).at("microbatches") == 2);
  check_message(show({"--microbatches", "3"}, kTwoByTwo),
                2,
                {"--microbatches expects 2", "found 3", "leave it out"});
  check_message(show({"--microbatches", "2"}, schedule_of("1f1b --devices 2 --microbatches 2")),
                2,
                {"--microbatches is an option of strategies"});
}

TEST_CASE("outputs that contradict each other, and pictures of too much, are refused",
          "[tools][dag][bad-input]") {
  check_message(show({"--svg", "a", "--html", "a"}, kTwoByTwo), 2, {"expect two files", "'a'"});
  check_message(show({"--svg", "-", "--json"}, kTwoByTwo), 2, {"expect two files", "'-'"});
  check_message(show({"--svg", "a", "-o", "b"}, kTwoByTwo), 2, {"--output", "add --json"});
  const std::string many = schedule_of("1f1b --devices 4 --microbatches 64");
  check_message(show({"--svg", "-"}, many), 2, {"at most 1000 nodes", "fewer microbatches"});
  check_message(show({"--html", "-"}, many), 2, {"at most 1000 nodes", "fewer microbatches"});
  CHECK(show({}, many).exit_code == 0);
}

TEST_CASE("the program knows which commands need a model", "[tools][dag]") {
  CHECK(tools::names_model({"show", "a", "--model", "llama"}));
  CHECK(tools::names_model({"show", "a", "--model=llama"}));
  CHECK(tools::names_model({"show", "a", "--model-file", "m.pt2"}));
  CHECK_FALSE(tools::names_model({"show", "a", "--json"}));
  CHECK(tools::asks_for_options({"show", "--help"}));
  CHECK_FALSE(tools::asks_for_options({"--help"}));
  CHECK_FALSE(tools::asks_for_options({"convert", "--help"}));
}

TEST_CASE("what cannot be applied is told with its directive and what to do",
          "[tools][dag][bad-input]") {
  check_message(show({}, "split {} dim=MB n=2\nplace {PP:0} on [0]\nplace {PP:2} on [1]\n"),
                1,
                {"PP:1", "place"});
  check_message(show({}, "place {PP:0} over [0]\n"), 2, {"line 1"});
  // Each rank's order waits for the other's.
  check_message(show({},
                     "split {} dim=MB n=2\nplace {PP:0} on [0]\nplace {PP:1} on [1]\n"
                     "order [{PP:0,MB:0,PASS:B}] [{PP:0,MB:1,PASS:F}]\n"
                     "order [{PP:1,MB:1,PASS:F}] [{PP:1,MB:0,PASS:B}]\n"),
                1,
                {"1B0", "0F1"});
  check_message(show({}, "split {} dim=MB n=2\n"), 2, {"expects --stages N or --graph EDGES"});
  check_message(show({"--stages", "2"}, "0F0 0B0\n"), 2, {"--stages is an option of strategies"});
  check_message(show({}, "0B0 0F0\n"), 1, {"breaks V"});
  check_message(run_in_test(&tools::dag, Words{"show", "/nowhere"}), 2, {"/nowhere"});
}

}  // namespace stagecraft::tests
