/// Tests `stagecraft schedule list`: it names every builder.

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("list names every builder with its constraint and parameters", "[tools][schedule]") {
  const CommandResult people = run_schedule({"list"});
  const CommandResult programs = run_schedule({"list", "--json"});
  CHECK(people.exit_code == 0);
  REQUIRE(programs.exit_code == 0);
  const auto list = nlohmann::json::parse(programs.out).at("builders");
  REQUIRE(list.size() == builders().size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const BuilderInfo& builder = builders()[i];
    CAPTURE(builder.name);
    CHECK_THAT(people.out, ContainsSubstring(std::string(builder.name) + ' '));
    CHECK_THAT(people.out, ContainsSubstring(std::string(builder.constraint)));
    CHECK(list[i].at("name") == builder.name);
    CHECK(list[i].at("constraint") == builder.constraint);
    CHECK(list[i].at("takes_graph") == builder.takes_graph);
    REQUIRE(list[i].at("parameters").size() == builder.parameters.size());
    for (std::size_t p = 0; p < builder.parameters.size(); ++p) {
      const std::string name(builder.parameters[p].name);
      CHECK(list[i].at("parameters")[p].at("name") == name);
      CHECK_THAT(people.out, ContainsSubstring("--set " + name + "="));
    }
  }
}

TEST_CASE("what list says of bubbles is so", "[tools][schedule]") {
  constexpr std::string_view kClaim =
      "no bubble between a device's first and last task (M >= 2P - 1)";
  std::size_t claims = 0;
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    if (builder.summary.find(kClaim) == std::string_view::npos) {
      CHECK(builder.summary.find("no bubble") == std::string_view::npos);
      continue;
    }
    ++claims;
    const CommandResult result = run_schedule_line(
        "make " + std::string(builder.name) + " --devices 4 --microbatches 7 | simulate - --json");
    const auto figures = nlohmann::json::parse(result.out);
    CHECK(figures.at("span_idle") == nlohmann::json{0, 0, 0, 0});
    CHECK(figures.at("idle") != nlohmann::json{0, 0, 0, 0});  // the ramps are idle
  }
  CHECK(claims == 2);
}

}  // namespace stagecraft::tests
