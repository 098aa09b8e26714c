/// Tests Piper's form of strategies.
#include "stagecraft/scheduler/strategy/piper_strategy.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/formats/json/piper.h"
#include "stagecraft/scheduler/strategy/strategy_file.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string refusal_of_piper(const std::string& text) {
  return refusal([&] { (void)parse_piper_strategy(text); }, Errc::ScheduleParse);
}

std::string unwritten(const std::string& strategy) {
  return refusal([&] { (void)to_piper(parse_strategy(strategy)); }, Errc::ScheduleParameter);
}

constexpr const char* kWhole =
    "split {} dim=MB n=8\n"
    "place {PP:0} on [0,2] stream=pp\n"
    "place {PP:*} on [3,1]\n"
    "replicate {PP:0} on [0,2] bucket_size=25M reduce_stream=dp gather_stream=ag shard_grads "
    "shard_params\n"
    "replicate {} on [1,3]\n"
    "shard {EP:*,PASS:F} on [0,2] stream=ep\n"
    "order [{PP:0,MB:0,PASS:F}] [{PP:0,MB:1,PASS:BI},{PP:0,MB:2,PASS:F}] [{PP:0,MB:1,PASS:BW}]\n";

TEST_CASE("a whole strategy goes to Piper's form and back", "[scheduler][strategy][piper]") {
  const Strategy strategy = parse_strategy(kWhole);
  const std::string piper = to_piper(strategy);
  CHECK(parse_piper_strategy(piper) == strategy);
  CHECK(to_piper(parse_piper_strategy(piper)) == piper);
  CHECK_THAT(
      piper,
      ContainsSubstring(
          R"({"op": "split", "filter": {}, "dim_name": "MB", "num_microbatches": 8})") &&
          ContainsSubstring(
              R"({"op": "place", "filter": {"PP": 0}, "devices": [0, 2], "stream": "pp"})") &&
          ContainsSubstring(R"({"op": "place", "filter": {"PP": "*"}, "devices": [3, 1]})") &&
          ContainsSubstring(
              R"("shard_params": true, "shard_grads": true, "bucket_size": 25, "gather_stream": "ag", "reduce_stream": "dp"})") &&
          ContainsSubstring(
              R"([{"PP": 0, "MB": 1, "PASS": "BI"}, {"PP": 0, "MB": 2, "PASS": "F"}])"));
  CHECK(to_piper(Strategy()) == "[]\n");
}

TEST_CASE("every builder's strategy goes to Piper's form and back",
          "[scheduler][strategy][piper]") {
  for (const BuilderInfo& builder : builders()) {
    INFO(builder.name);
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const Schedule schedule = build_schedule(builder.name, request);
    const Strategy strategy = strategy_of(schedule, Layout::of(schedule));
    CHECK(parse_piper_strategy(to_piper(strategy)) == strategy);
    CHECK(parse_strategy_file(to_piper(strategy)) == strategy);
    CHECK(parse_strategy_file(to_string(strategy)) == strategy);
  }
}

TEST_CASE("a corpus of strategies goes to Piper's form and back", "[scheduler][strategy][piper]") {
  int written = 0;
  for (const auto& entry : std::filesystem::directory_iterator("fuzz/corpus/strategy")) {
    INFO(entry.path());
    std::ifstream file(entry.path());
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    try {
      const Strategy strategy = parse_strategy_file(text);
      const std::string piper = to_piper(strategy);
      CHECK(parse_piper_strategy(piper) == strategy);
      ++written;
    } catch (const Error& error) {  // a wrong strategy, or one that Piper has no words for
      CHECK((error.code() == Errc::ScheduleParse || error.code() == Errc::ScheduleParameter));
    }
  }
  CHECK(written > 3);
}

TEST_CASE("a schedule and its strategy have the same Piper file", "[scheduler][strategy][piper]") {
  const Schedule schedule = one_f_one_b(4, 8);
  const std::string piper = to_piper(strategy_of(schedule, Layout::of(schedule)));
  CHECK(piper == to_piper(schedule));
  CHECK(parse_piper(piper).schedule == schedule.to_list());
}

TEST_CASE("Piper's spellings are read", "[scheduler][strategy][piper]") {
  CHECK(parse_piper_strategy(R"([
    {"filter": {"PASS": "F", "PP": "1", "EP": "*"}, "stream": null, "devices": [2], "op": "place"},
    {"op": "replicate", "filter": {}, "devices": [2], "shard_params": false, "bucket_size": null}
  ])") == parse_strategy("place {PP:1,EP:*,PASS:F} on [2]\nreplicate {} on [2]\n"));
  CHECK(looks_like_strategy_file("\n [ {"));
  CHECK_FALSE(looks_like_strategy_file("[0]"));
}

TEST_CASE("a wrong Piper strategy is refused with place and remedy",
          "[scheduler][strategy][piper]") {
  CHECK_THAT(refusal_of_piper(R"([{"op": "plce"}])"), ContainsSubstring("did you mean place?"));
  CHECK_THAT(refusal_of_piper("[\n {\"op\": \"place\", \"devices\": [0]}]"),
             ContainsSubstring("line 2, column 2") && ContainsSubstring("needs \"filter\""));
  CHECK_THAT(refusal_of_piper(R"([{"op": "place", "filter": {}}])"),
             ContainsSubstring("needs \"devices\""));
  CHECK_THAT(refusal_of_piper(R"([{"op": "place", "filter": {}, "devices": [65536]}])"),
             ContainsSubstring("below 65536"));
  CHECK_THAT(
      refusal_of_piper(R"([{"op": "replicate", "filter": {}, "devices": [0], "stream": "a"}])"),
      ContainsSubstring("'stream' is no word of replicate") && ContainsSubstring("reduce_stream"));
  CHECK_THAT(
      refusal_of_piper(R"([{"op": "place", "filter": {}, "devices": [0], "stream": "a b"}])"),
      ContainsSubstring("letters, digits") && ContainsSubstring("'a b'"));
  CHECK_THAT(refusal_of_piper(R"([{"op": "place", "filter": {}, "devices": [0], "stream": 3}])"),
             ContainsSubstring("a name in quotes"));
  CHECK_THAT(refusal_of_piper(R"([{"op": "place", "filter": {"PP": null}, "devices": [0]}])"),
             ContainsSubstring("the tag 'PP' has a number"));
  CHECK_THAT(
      refusal_of_piper(R"([{"op": "replicate", "filter": {}, "devices": [0], "shard_grads": 1}])"),
      ContainsSubstring("true or false"));
  CHECK_THAT(
      refusal_of_piper(R"([{"op": "replicate", "filter": {}, "devices": [0], "bucket_size": 0}])"),
      ContainsSubstring("megabytes from 1 to"));
  CHECK_THAT(refusal_of_piper(R"([{"op": "split", "filter": {}, "num_microbatches": 2}])"),
             ContainsSubstring("\"dim_name\""));
  CHECK_THAT(refusal_of_piper(R"([{"op": "order", "filters": [[{"PP": 0}]]}])"),
             ContainsSubstring("two groups"));
  CHECK_THAT(refusal_of_piper(R"([{"op": "ordr"}, {"op": "place", "filter": {}}])"),
             ContainsSubstring("2 faults"));
  (void)refusal_of_piper("");
  (void)refusal_of_piper("[{]");
}

TEST_CASE("what Piper has no word for is told with all its directives",
          "[scheduler][strategy][piper]") {
  CHECK_THAT(
      unwritten("split {} n=2\nreplicate {} on [0] shard_optimizer bucket_size=3K\n"
                "order [{PP:0,MB:0,PASS:F}]\n"),
      ContainsSubstring("directive 2 (line 2), replicate: Piper has no word for shard_optimizer") &&
          ContainsSubstring("found 3072 bytes") &&
          ContainsSubstring(
              "directive 3 (line 3), order: Piper's order directives hold two groups"));
  CHECK_THAT(unwritten("shard {EP:*} on [0,1,2,3] n=2\n"),
             ContainsSubstring("Piper shards over all devices of a filter"));
}

}  // namespace
}  // namespace stagecraft
