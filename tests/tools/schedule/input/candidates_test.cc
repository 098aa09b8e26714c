#include "stagecraft/tools/schedule/input/candidates.h"

#include <algorithm>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<std::string> names_found(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (const BuilderInfo* builder : named_builders(words)) {
    names.emplace_back(builder->name);
  }
  return names;
}

Candidate candidate(const char* name, const CommonJob& job) {
  return built_candidate(find_builder(name), job);
}

TEST_CASE("builders are compared in the order of their names on the line, each once",
          "[tools][schedule]") {
  CHECK(names_found({"zb-v", "1f1b", "zb-v"}) == std::vector<std::string>{"zb-v", "1f1b"});
  const std::vector<std::string> all = names_found({"zb-v", "all", "all"});
  CHECK(all.size() == builders().size());
  CHECK(all.front() == "zb-v");
  CHECK(std::ranges::count(all, "zb-v") == 1);
  CHECK(names_found({}).empty());
  CHECK_THAT(refusal([] {
               (void)named_builders({"gpipe", "1f1"});
             }),
             ContainsSubstring("'1f1'") && ContainsSubstring("did you mean 1f1b?"));
}

TEST_CASE("a builder that does not take the job is a candidate with its reason",
          "[tools][schedule]") {
  const Candidate odd = candidate("chimera", {.devices = 3, .microbatches = 4});
  CHECK(odd.name == "chimera");
  CHECK_FALSE(odd.figures);
  CHECK_THAT(odd.reason, ContainsSubstring("even number of devices"));
  const Candidate even = candidate("chimera", {.devices = 4, .microbatches = 4});
  CHECK(even.figures);
  CHECK(even.reason.empty());
}

TEST_CASE("only builders that leave the chunks open take those of the job", "[tools][schedule]") {
  const CommonJob job{.devices = 2, .microbatches = 4, .chunks = 3};
  REQUIRE(candidate("interleaved", job).figures);
  CHECK(candidate("interleaved", job).figures->stages == 6);
  REQUIRE(candidate("zb-v", job).figures);
  CHECK(candidate("zb-v", job).figures->stages == 4);
  REQUIRE(candidate("1f1b", job).figures);
  CHECK(candidate("1f1b", job).figures->stages == 2);
}

TEST_CASE("builders of stage graphs are compared on a chain, one stage per device",
          "[tools][schedule]") {
  const CommonJob job{.devices = 4, .microbatches = 8};
  const Candidate on_graph = candidate("dag-1f1b", job), usual = candidate("1f1b", job);
  REQUIRE((on_graph.figures && usual.figures));
  CHECK(on_graph.figures->stages == 4);
  CHECK(on_graph.figures->makespan == usual.figures->makespan);
}

TEST_CASE("a builder that takes costs arranges the schedule for those of the job",
          "[tools][schedule]") {
  CommonJob job{.devices = 4, .microbatches = 8};
  job.costs.links.usual.latency = 3;
  const Candidate arranged = candidate("zb-auto", job);
  REQUIRE(arranged.figures);
  // Without costs it arranges the schedule for transfers that take no time.
  const Schedule usual = build_schedule("zb-auto", {.devices = 4, .microbatches = 8});
  CHECK(arranged.figures->makespan <
        schedule_figures(usual, usual.stage_graph(), job.costs).makespan);
}

}  // namespace
}  // namespace stagecraft::tools
