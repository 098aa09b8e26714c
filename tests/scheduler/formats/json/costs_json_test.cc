#include "stagecraft/scheduler/formats/json/costs_json.h"

#include <string>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string failure_of(const std::string& text) {
  return refusal([&] { (void)parse_costs(text); }, Errc::ScheduleParse);
}

std::string with_version(const std::string& fields) {
  return fmt::format("{{\"version\": 1,\n{}}}", fields);
}

std::string failure_in(const std::string& fields) {
  return failure_of(with_version(fields));
}

std::string failure_in_stages(const std::string& fields) {
  return failure_in(fmt::format("\"stages\": {{{}}}", fields));
}

std::vector<std::string> notes_of(const std::string& fields) {
  return parse_costs(with_version(fields)).notes;
}

TEST_CASE("a version alone states the defaults", "[scheduler][costs]") {
  CHECK(parse_costs(R"({"version": 1})").costs == Costs{});
  CHECK(parse_costs(R"({"version": 1})").notes.empty());
}

TEST_CASE("every field arrives where it belongs, in any order", "[scheduler][costs]") {
  const ReadCosts read = parse_costs(R"({
    "links": {"each": [{"from": 1, "to": 0, "latency": 2}],
              "usual": {"latency": 0.5, "bandwidth": 100},
              "edge_bytes": 50, "edges": [{"from": 0, "to": 1, "bytes": 75}]},
    "stages": {
      "each": [{"stage": 2, "F": 5, "fixed": 100, "trained": 20,
                "states": 60, "activations": 8, "transient": 1,
                "recompute": 2.5, "replayed": 30},
               {"activations": 4, "stage": 0}],
      "input_release": 0.25,
      "usual": {"F": 3, "B": 6, "I": 4, "W": 2, "U": 1},
      "group": 7, "groups": [{"stages": [0, 3], "duration": 6.5}]},
    "operators": [{"name": "aten::mm", "id": 7, "stage": 2, "forward": 1, "backward_input": 2,
                   "backward_weight": 3, "kept": 4, "transient": 5, "output": 6, "update": 8,
                   "sums": 0.5, "joined": true,
                   "input": 9, "reads": [{"from": 3, "output": 1, "bytes": 10}, {"from": 2}],
                   "parameters": ["a", "b"]},
                  {"id": 0}],
    "samples": 4, "batch": 24, "sizes": [{"operators": [{"id": 7, "forward": 2}], "samples": 8}],
    "parameters": [{"held": 4, "name": "a", "bytes": 1}],
    "device": {"threads": 2, "processors": 5, "name": "a \"box\"", "noise": 0.25, "task": 3,
               "step": 4, "split": 1.25, "split_bytes": 1.5, "precision": "bf16"},
    "version": 1})");
  CHECK(read.notes.empty());
  const StageCosts& stages = read.costs.stages;
  const Durations usual{
      .forward = 3, .backward = 6, .backward_input = 4, .backward_weight = 2, .update = 1};
  CHECK(stages.usual == usual);
  REQUIRE(stages.each.size() == 3);
  CHECK(stages.each[0] == usual);
  CHECK(stages.each[2].forward == 5);
  CHECK(stages.each[2].backward == 6);
  CHECK(stages.each[2].recompute == 2.5);
  CHECK(stages.each[2].of(CellKind::Backward) == 8.5);
  CHECK(stages.each[2].of(CellKind::BackwardInput) == 6.5);
  CHECK(stages.each[2].of(CellKind::BackwardWeight) == 2);
  CHECK(stages.memory.replayed == std::vector<double>{0, 0, 30});
  CHECK(stages.group == 7);
  CHECK(stages.groups.at({0, 3}) == 6.5);
  CHECK(stages.memory.fixed == std::vector<double>{0, 0, 100});
  CHECK(stages.memory.trained == std::vector<double>{0, 0, 20});
  CHECK(stages.memory.states == std::vector<double>{0, 0, 60});
  CHECK(stages.memory.activations == std::vector<double>{4, 0, 8});
  CHECK(stages.memory.input_release == 0.25);
  const LinkCosts& links = read.costs.links;
  CHECK(links.transfer({0, 1}, 0, 1) == 0.5 + 75.0 / 100);
  CHECK(links.transfer({0, 1}, 1, 0) == 2 + 75.0 / 100);
  CHECK(links.transfer({1, 2}, 1, 2) == 0.5 + 50.0 / 100);
  CHECK(links.transfer({1, 2}, 1, 1) == 0);
  CHECK(read.costs.operators == std::vector<OperatorCost>{{.id = 7,
                                                           .name = "aten::mm",
                                                           .stage = StageId(2),
                                                           .forward = 1,
                                                           .backward_input = 2,
                                                           .backward_weight = 3,
                                                           .sums = 0.5,
                                                           .update = 8,
                                                           .kept = 4,
                                                           .transient = 5,
                                                           .output = 6,
                                                           .input = 9,
                                                           .reads = {{3, 1, 10}, {2, 0, 0}},
                                                           .parameters = {"a", "b"},
                                                           .joined = true},
                                                          {.id = 0}});
  CHECK(read.costs.samples == 4);
  CHECK(read.costs.batch == 24);
  CHECK(read.costs.operators_at.at(8) == std::vector<OperatorCost>{{.id = 7, .forward = 2}});
  CHECK(read.costs.parameters == std::vector<ParameterCost>{{"a", 1, 4}});
  CHECK(read.costs.device == CostDevice{.name = "a \"box\"",
                                        .threads = 2,
                                        .processors = 5,
                                        .noise = 0.25,
                                        .task = 3,
                                        .step = 4,
                                        .split = 1.25,
                                        .split_bytes = 1.5,
                                        .precision = "bf16"});
}

TEST_CASE("devices may differ in speed and memory", "[scheduler][costs]") {
  const Costs costs =
      parse_costs(
          R"({"version": 1, "devices": [{"device": 2, "speed": 0.5}, {"memory": 8e9, "device": 0}]})")
          .costs;
  CHECK(costs.devices == std::map<int, DeviceTraits>{{0, {.memory = 8e9}}, {2, {.speed = 0.5}}});
  CHECK(parse_costs(to_json(costs)).costs == costs);
  for (const auto& [entry, fault] :
       {std::pair{R"({"speed": 2})", "needs its number"},
        std::pair{R"({"device": 1, "speed": 0})", "\"speed\" needs a number above 0"},
        std::pair{R"({"device": 1, "memory": -1})", "\"memory\" needs a number above 0"},
        std::pair{R"({"device": 65536})", "a whole number from 0 to 65535"},
        std::pair{R"({"device": 1}, {"device": 1})", "device 1 appears twice"}}) {
    CAPTURE(entry);
    CHECK_THROWS_WITH(parse_costs(fmt::format(R"({{"version": 1, "devices": [{}]}})", entry)),
                      ContainsSubstring(fault));
  }
}

TEST_CASE("what is written is read back equal (CJ-1)", "[scheduler][costs]") {
  Costs costs;
  costs.device = {.name = "\"two\"\\lines\n\tÄ",
                  .threads = 3,
                  .processors = 6,
                  .noise = 0.1,
                  .task = 0.5,
                  .step = 0.75};
  costs.samples = 4;
  costs.batch = 16;
  costs.operators_at[8] = {{.id = 3, .forward = 0.5}};
  costs.parameters = {{"a\"b", 1, 4}, {"c", 0.5, 2}};
  costs.operators = {
      {.id = 3, .name = "aten::linear", .stage = StageId(1), .forward = 1e-7},
      {.id = 2, .backward_input = 0.1, .backward_weight = 0.2, .kept = 1e9, .joined = true},
      {.id = 9, .name = "p::own", .transient = 1, .output = 2},
      {.id = 10, .reads = {{9, 1, 3}, {2, 0, 0.5}}, .parameters = {"a\"b", "c"}}};
  costs.stages.usual.forward = 0.1;
  costs.stages.each = {costs.stages.usual,
                       {.forward = 1e-7, .backward = 1.0 / 3},
                       costs.stages.usual};  // adds nothing new, and is kept all the same
  costs.stages.group = 2.5;
  costs.stages.groups[{1, 0}] = 2;
  costs.device.precision = "bf16";
  costs.stages.memory.fixed = {1, 2};
  costs.stages.memory.trained = {0.25};
  costs.stages.memory.states = {0, 1};
  costs.stages.memory.activations = {3, 4, 0, 0, 5};
  costs.stages.memory.transient = {0};
  costs.stages.memory.replayed = {0, 7};
  costs.stages.memory.input_release = 0.5;
  costs.links.usual = {.latency = 1e-5, .bandwidth = 1e10};
  costs.links.sums = {.latency = 2, .bandwidth = 1e9};
  costs.links.each[{0, 1}] = {.latency = 3};  // unlimited, though the usual link has a limit
  costs.links.each[{1, 0}] = {.latency = 3, .bandwidth = 5};
  costs.links.bytes = 1e6;
  costs.links.edge_bytes[{0, 1}] = 12345678;
  CHECK(parse_costs(to_json(costs)).costs == costs);
  CHECK(parse_costs(to_json(costs)).notes.empty());
  CHECK_THAT(to_json(costs), !ContainsSubstring("recompute"));
  costs.stages.each[1].recompute = 0.25;
  CHECK(parse_costs(to_json(costs)).costs == costs);
  costs.stages.memory.input_release = -0.5;  // I adds gradients that wait for W
  CHECK(parse_costs(to_json(costs)).costs == costs);
  CHECK(parse_costs(to_json({})).costs == Costs{});
}

Durations usual_of(const std::string& fields) {
  return parse_costs(with_version(fmt::format(R"("stages": {{"usual": {{{}}}}})", fields)))
      .costs.stages.usual;
}

std::string note_of_usual(const std::string& fields) {
  return notes_of(fmt::format(R"("stages": {{"usual": {{{}}}}})", fields)).at(0);
}

TEST_CASE("of a backward and its halves those that are absent are made from those that are not",
          "[scheduler][costs]") {
  const Durations halved = usual_of(R"("F": 0.01, "B": 0.02)");
  CHECK(halved.backward_input == 0.01);
  CHECK(halved.backward_weight == 0.01);
  CHECK(note_of_usual(R"("F": 0.01, "B": 0.02)") ==
        "\"usual\" of \"stages\" lacks I and W: each is half of B");
  CHECK(usual_of(R"("I": 5, "W": 3)").backward == 8);
  CHECK_THAT(note_of_usual(R"("I": 5, "W": 3)"),
             ContainsSubstring("lacks B: it is the sum of I and W"));
  CHECK(usual_of(R"("B": 8, "I": 5)").backward_weight == 3);
  CHECK_THAT(note_of_usual(R"("B": 8, "I": 5)"), ContainsSubstring("lacks W"));
  CHECK(usual_of(R"("B": 8, "W": 2)").backward_input == 6);
  CHECK_THAT(note_of_usual(R"("B": 8, "W": 2)"), ContainsSubstring("lacks I"));
  // A file that states all three may have halves that take longer together.
  CHECK(usual_of(R"("B": 8, "I": 5, "W": 5)").backward == 8);
  CHECK(notes_of(R"("stages": {"usual": {"B": 8, "I": 5, "W": 5}})").empty());
  CHECK(notes_of(R"("stages": {"usual": {"F": 8, "U": 5}})").empty());
}

TEST_CASE("a stage divides its backward as the usual one is divided", "[scheduler][costs]") {
  const ReadCosts read = parse_costs(with_version(
      R"("stages": {"each": [{"stage": 0, "B": 20}, {"stage": 1, "F": 2}, {"stage": 2, "B": 30},
                             {"stage": 3, "I": 9}],
                    "usual": {"B": 10, "I": 9, "W": 3}})"));
  const std::vector<Durations>& each = read.costs.stages.each;
  CHECK(each[0].backward_input == 18);
  CHECK(each[0].backward_weight == 6);
  CHECK(each[1].backward == 10);
  CHECK(each[1].backward_input == 9);
  CHECK(each[2].backward_weight == 9);
  CHECK(each[3].backward == 10);
  REQUIRE(read.notes.size() == 2);
  CHECK(read.notes[0] == "\"each\", stage 3, lacks B: it has the usual proportion to I and W");
  CHECK(read.notes[1] ==
        "\"each\", stages 0, 2, lacks I and W: they divide B in the usual proportion");
}

TEST_CASE("halves that do not say what a backward takes are refused",
          "[scheduler][costs][bad-input]") {
  CHECK_THAT(failure_in_stages(R"("usual": {"F": 1, "I": 2})"),
             ContainsSubstring("line 2, column 21") &&
                 ContainsSubstring("I is given without B and without W"));
  CHECK_THAT(failure_in_stages(R"("each": [{"stage": 0, "W": 2}])"),
             ContainsSubstring("W is given without B and without I"));
  CHECK_THAT(failure_in_stages(R"("usual": {"B": 1, "I": 2})"),
             ContainsSubstring("leaves nothing of a backward of 1 for W"));
}

TEST_CASE("a link between two rows has from the usual what it does not say", "[scheduler][costs]") {
  const LinkCosts links = parse_costs(with_version(
                                          R"("links": {"each": [{"from": 0, "to": 1, "latency": 2},
                                            {"from": 1, "to": 0, "bandwidth": 5},
                                            {"from": 1, "to": 2, "bandwidth": null}],
                                   "usual": {"latency": 1, "bandwidth": 100}, "edge_bytes": 50})"))
                              .costs.links;
  CHECK(links.transfer({0, 1}, 0, 1) == 2.5);
  CHECK(links.transfer({0, 1}, 1, 0) == 1 + 10);
  CHECK(links.transfer({1, 2}, 1, 2) == 1);
}

TEST_CASE("what sizes, parameters and reads lack or have twice is refused",
          "[scheduler][costs][bad-input]") {
  CHECK_THAT(failure_in(R"("samples": 0)"), ContainsSubstring("at least one sample"));
  CHECK_THAT(failure_in(R"("sizes": [{"operators": []}])"), ContainsSubstring("\"samples\": 8"));
  CHECK_THAT(failure_in(R"("sizes": [{"samples": 2}, {"samples": 2}])"),
             ContainsSubstring("2 samples appear twice"));
  CHECK_THAT(failure_in(R"("parameters": [{"bytes": 2}])"), ContainsSubstring("needs its name"));
  CHECK_THAT(failure_in(R"("parameters": [{"name": "a"}, {"name": "a"}])"),
             ContainsSubstring("appears twice"));
  CHECK_THAT(failure_in(R"("operators": [{"id": 1, "reads": [{"output": 2}]}])"),
             ContainsSubstring("\"from\": 0"));
  CHECK_THAT(failure_in(R"("operators": [{"id": 1, "joined": 1}])"),
             ContainsSubstring("true or false"));
}

TEST_CASE("a version that is missing or not ours is refused with what to do",
          "[scheduler][costs][bad-input]") {
  CHECK_THAT(failure_of("{\n \"durations\": {\"F\": 1}}"),
             ContainsSubstring("line 1, column 1") && ContainsSubstring("needs its version") &&
                 ContainsSubstring(R"(write {"version": 1, "stages": {}, "links": {}})"));
  // The version is checked before anything else: the fields of a later version may have another
  // meaning.
  CHECK_THAT(failure_of("{\"stages\": 3, \"version\": 2}"),
             ContainsSubstring("line 1, column 26") && ContainsSubstring("version 2") &&
                 ContainsSubstring("reads up to 1"));
  for (const char* wrong : {"0", "-1", "1.5", "\"1\"", "null", "9999999999"}) {
    CAPTURE(wrong);
    CHECK_THAT(failure_of(fmt::format("{{\"version\": {}}}", wrong)),
               ContainsSubstring("\"version\" needs a whole number"));
  }
  CHECK_THAT(failure_of("{\"version\": 1, \"version\": 1}"), ContainsSubstring("twice"));
  CHECK_THAT(failure_of("[]"), ContainsSubstring("expected costs in braces"));
}

TEST_CASE("a section or field that is not known is noted and left out, a misspelt one found (CJ-1)",
          "[scheduler][costs]") {
  const ReadCosts read = parse_costs(with_version(
      R"("linsk": {"usual": {"latency": 1}}, "stages": {"group": 2}, "energy": [{"joule": -1}])"));
  CHECK(read.costs.stages.group == 2);
  CHECK(read.costs.links == LinkCosts{});
  REQUIRE(read.notes.size() == 2);
  CHECK_THAT(read.notes[0],
             ContainsSubstring("line 2, column 1: costs.json has a section 'linsk'") &&
                 ContainsSubstring("did you mean links?"));
  CHECK_THAT(
      read.notes[1],
      ContainsSubstring("section 'energy'") &&
          ContainsSubstring("there are version, device, devices, operators, samples, batch, sizes, "
                            "parameters, stages, links"));
  CHECK_THAT(notes_of(R"("stages": {"each": [{"stage": 0, "activation": 2}]})").at(0),
             ContainsSubstring("an entry of \"stages\" has a field 'activation'") &&
                 ContainsSubstring("did you mean activations?"));
  CHECK_THAT(notes_of(R"("links": {"usual": {"latensy": 2}})").at(0),
             ContainsSubstring("did you mean latency?"));
  CHECK_THAT(notes_of(R"("device": {"thread": 2})").at(0),
             ContainsSubstring("did you mean threads?"));
}

TEST_CASE("a field of many entries is noted once, and many fields are counted",
          "[scheduler][costs]") {
  CHECK(notes_of(R"("operators": [{"id": 0, "flops": 1}, {"id": 1, "flops": 2}])").size() == 1);
  std::string fields = "\"stages\": {\"x0\": 0";
  for (int i = 1; i < 25; ++i) {
    fields += fmt::format(", \"x{}\": 0", i);
  }
  const std::vector<std::string> notes = notes_of(fields + "}");
  REQUIRE(notes.size() == 21);
  CHECK_THAT(notes.back(), ContainsSubstring("5 more"));
}

TEST_CASE("all that is wrong in a file of costs is told at once", "[scheduler][costs]") {
  const std::string all = failure_of(
      "{\"version\": 1,\n"
      " \"samples\": 0,\n"
      " \"operators\": [{\"id\": 0, \"forward\": -1}, {\"forward\": 2}, {\"id\": \"one\"}],\n"
      " \"stages\": {\"usual\": {\"F\": -1, \"B\": \"2\"}, \"each\": [{\"F\": 1}, 7],\n"
      "            \"usual\": {}},\n"
      " \"links\": {\"edges\": [{\"from\": 0, \"to\": 1}, {\"from\": 0, \"to\": 1}]}}");
  CHECK_THAT(all, ContainsSubstring("10 faults\nline 2, column 13: "));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 37: field \"forward\" needs"));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 42: an entry of \"operators\" needs"));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 65: field \"id\" needs"));
  CHECK_THAT(all, ContainsSubstring("\nline 4, column 28: field \"F\" needs"));
  CHECK_THAT(all, ContainsSubstring("\nline 4, column 37: field \"B\" needs"));
  CHECK_THAT(all,
             ContainsSubstring("\nline 4, column 52: an entry of \"stages\" needs its number"));
  CHECK_THAT(all, ContainsSubstring("\nline 4, column 62: an entry of \"stages\" needs an object"));
  CHECK_THAT(all, ContainsSubstring("\nline 5, column 13: field \"usual\" appears twice"));
  CHECK_THAT(all, ContainsSubstring("\nline 6, column 44: 0 to 1 appears twice"));
  CHECK_THAT(failure_of("{\"version\": 1, \"samples\": 0, \"stages\": {\"usual\": {\"F\": 01}}}"),
             ContainsSubstring("not JSON") && !ContainsSubstring("samples"));
}

TEST_CASE("a wrong value is refused with its place and what would do",
          "[scheduler][costs][bad-input]") {
  CHECK_THAT(failure_in_stages("\"usual\":\n  {\"F\": -1}"),
             ContainsSubstring("line 3, column 9") && ContainsSubstring("\"F\"") &&
                 ContainsSubstring("at least 0"));
  CHECK_THAT(failure_in_stages("\"group\": \"2\""), ContainsSubstring("\"group\" needs a number"));
  CHECK_THAT(failure_in_stages("\"group\": 1, \"group\": 2"), ContainsSubstring("twice"));
  CHECK_THAT(failure_in_stages("\"group\": 1e999"), ContainsSubstring("needs a number"));
  CHECK_THAT(failure_in_stages("\"each\": [{\"F\": 1}]"), ContainsSubstring("\"stage\": 3"));
  CHECK_THAT(failure_in_stages("\"each\": [{\"stage\": 2000000000}]"),
             ContainsSubstring("from 0 to 65535"));
  CHECK_THAT(failure_in_stages("\"each\": [{\"stage\": 1}, {\"stage\": 1}]"),
             ContainsSubstring("stage 1 appears twice"));
  CHECK_THAT(failure_in_stages("\"each\": {}"), ContainsSubstring("\"each\" needs a list"));
  CHECK_THAT(failure_in_stages("\"groups\": [{\"stages\": [1], \"duration\": 2}]"),
             ContainsSubstring("\"groups\" needs"));
  CHECK_THAT(failure_in_stages("\"input_release\": 2"), ContainsSubstring("at most 1"));
  CHECK_THAT(failure_in("\"stages\": []"), ContainsSubstring("\"stages\" needs an object"));
  CHECK_THAT(failure_in("\"links\": {\"each\": [{\"from\": 1}]}"),
             ContainsSubstring("both its ends"));
  CHECK_THAT(failure_in("\"links\": {\"usual\": {\"bandwidth\": 0}}"),
             ContainsSubstring("above 0"));
  CHECK_THAT(failure_in("\"operators\": [{\"name\": \"a\"}]"), ContainsSubstring("\"id\": 3"));
  CHECK_THAT(failure_in("\"operators\": [{\"id\": 1}, {\"id\": 1}]"),
             ContainsSubstring("operator 1 appears twice"));
  CHECK_THAT(failure_in("\"operators\": [{\"id\": 1, \"name\": 2}]"),
             ContainsSubstring("\"name\" needs a text"));
  CHECK_THAT(failure_in("\"operators\": [{\"id\": 1, \"kept\": -2}]"),
             ContainsSubstring("\"kept\" needs a number"));
  CHECK_THAT(failure_in("\"device\": {\"threads\": 1.5}"),
             ContainsSubstring("\"threads\" needs a whole number"));
  CHECK(failure_of("{\"version\": 1") != "no failure");
  CHECK(failure_of("{\"version\": 1, \"x\": }") != "no failure");
  CHECK(failure_of("") != "no failure");
}

}  // namespace
}  // namespace stagecraft
