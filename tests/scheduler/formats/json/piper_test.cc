#include "stagecraft/scheduler/formats/json/piper.h"

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string piper_complaint(const std::string& text) {
  return refusal([&] { (void)parse_piper(text); }, Errc::ScheduleParse);
}

std::string not_written(const Schedule& schedule) {
  return refusal(
      [&] { (void)write_schedule(schedule, schedule.stage_graph(), find_format("piper")); },
      Errc::ScheduleParameter);
}

const std::string kSplit =
    R"({"op": "split", "filter": {}, "dim_name": "MB", "num_microbatches": 1})";
const std::string kPlace = R"({"op": "place", "filter": {"PP": 0}, "devices": [0]})";
const std::string kOrder =
    R"({"op": "order", "filters": [[{"PP": 0, "MB": 0, "PASS": "F"}], [{"PP": 0, "MB": 0, "PASS": "B"}]]})";

std::string list(const std::vector<std::string>& directives) {
  std::string text;
  for (const std::string& directive : directives) {
    text += (text.empty() ? "[" : ",\n ") + directive;
  }
  return text + "]";
}

TEST_CASE("the order directives of Piper are the rows, BW the weight half", "[scheduler][piper]") {
  const ReadSchedule read = parse_piper(R"([
    {"op": "split", "filter": {}, "dim_name": "MB", "num_microbatches": 2},
    {"op": "place", "filter": {"PP": 0}, "devices": [1], "stream": "pp"},
    {"op": "place", "filter": {"PP": 1}, "devices": [0], "stream": "pp"},
    {"op": "order", "filters": [[{"PP": 0, "MB": 0, "PASS": "F"}],
      [{"PP": 0, "MB": 1, "PASS": "F"}], [{"PP": 0, "MB": 0, "PASS": "BI"}],
      [{"PASS": "BW", "MB": 0, "PP": 0}],
      [{"PP": 0, "MB": 1, "PASS": "B"}]]},
    {"op": "order", "filters": [[{"PP": 1, "MB": 0, "PASS": "F"}],
      [{"PP": 1, "MB": 1, "PASS": "F"}, {"PP": 1, "MB": 0, "PASS": "B"}],
      [{"PP": 1, "MB": 1, "PASS": "B"}]]}
  ])");
  // Piper numbers its ranks by their devices.
  CHECK(read.schedule == Schedule::parse("@form list\n1F0 1F1|1B0 1B1\n0F0 0F1 0I0 0W0 0B1"));
  CHECK(read.schedule.microbatches() == 2);
  CHECK(read.left_out == "\"stream\" in a directive");
}

TEST_CASE("another name of microbatches, and none", "[scheduler][piper]") {
  const std::string order =
      R"({"op": "order", "filters": [[{"PP": 0, "batch": 0, "PASS": "F"}], [{"PP": 0, "batch": 0, "PASS": "B"}]]})";
  const std::string split =
      R"({"op": "split", "filter": {}, "dim_name": "batch", "num_microbatches": 1})";
  const Schedule expected = Schedule::parse("@form list\n0F0 0B0");
  CHECK(parse_piper(list({order, kPlace, split})).schedule == expected);
  const std::string whole =
      R"({"op": "order", "filters": [[{"PP": 0, "PASS": "F"}], [{"PP": 0, "PASS": "B"}]]})";
  const ReadSchedule read = parse_piper(list({kPlace, whole}));
  CHECK(read.schedule == expected);
  CHECK(read.left_out.empty());
}

TEST_CASE("data parallelism is beside the schedule", "[scheduler][piper]") {
  const std::string replicate =
      R"({"op": "replicate", "filter": {"PP": 0}, "devices": [0, 4], "reduce_stream": "dp"})";
  const std::string place = R"({"op": "place", "filter": {"PP": 0}, "devices": [4, 0]})";
  const ReadSchedule read = parse_piper(list({kSplit, place, replicate, kOrder}));
  CHECK(read.schedule == Schedule::parse("@form list\n0F0 0B0"));
  CHECK(read.left_out == "several devices for a stage");
}

TEST_CASE("Piper's directives go both ways", "[scheduler][piper]") {
  CHECK(to_piper(one_f_one_b(1, 1)) ==
        "[\n"
        "  {\"op\": \"split\", \"filter\": {}, \"dim_name\": \"MB\", \"num_microbatches\": 1},\n"
        "  {\"op\": \"place\", \"filter\": {\"PP\": 0}, \"devices\": [0]},\n"
        "  {\"op\": \"order\", \"filters\": [\n"
        "    [{\"PP\": 0, \"MB\": 0, \"PASS\": \"F\"}],\n"
        "    [{\"PP\": 0, \"MB\": 0, \"PASS\": \"B\"}]]}\n"
        "]\n");
  const Schedule dag = one_f_one_b(StageGraph::from_edges(3, {{0, 2}, {1, 2}}), 4);
  for (const Schedule& schedule :
       {one_f_one_b(4, 8), interleaved(4, 8, 2), zb_v(3, 6), dualpipev(2, 4), dag}) {
    const ReadSchedule read = parse_piper(to_piper(schedule));
    CHECK(read.schedule == schedule.to_list());
    CHECK(read.schedule.microbatches() == schedule.microbatches());
    CHECK(read.left_out.empty());
  }
}

TEST_CASE("directives that are no schedule are refused with their place", "[scheduler][piper]") {
  CHECK_THAT(piper_complaint(list({kSplit, kPlace})), ContainsSubstring("no order directive"));
  CHECK_THAT(piper_complaint(list({kSplit, kPlace, kOrder, kOrder})),
             ContainsSubstring("line 4, column 2") && ContainsSubstring("have an order already"));
  CHECK_THAT(piper_complaint(list({kSplit, kSplit, kPlace, kOrder})),
             ContainsSubstring("only one split"));
  CHECK_THAT(piper_complaint(list({kPlace, kPlace, kOrder})), ContainsSubstring("placed twice"));
  CHECK_THAT(piper_complaint(list({kSplit, kOrder})),
             ContainsSubstring("no directive places stage 0"));
  CHECK_THAT(piper_complaint(list({kPlace, kOrder})),
             ContainsSubstring("exactly the tags PP and PASS"));
  CHECK_THAT(
      piper_complaint(list(
          {kSplit, kPlace, R"({"op": "place", "filter": {"PP": 1}, "devices": [1]})", kOrder})),
      ContainsSubstring("the devices [1] have no order"));
  CHECK_THAT(piper_complaint(list({R"({"op": "ordr", "filters": []})"})),
             ContainsSubstring("did you mean order?"));
  CHECK_THAT(piper_complaint(list({R"({"op": "place", "filter": {"EP": 0}, "devices": [0]})"})),
             ContainsSubstring("the filter of one stage"));
  CHECK_THAT(piper_complaint(list({R"({"op": "place", "filter": {"PP": "*"}, "devices": [0]})"})),
             ContainsSubstring("the filter of one stage"));
  CHECK_THAT(piper_complaint(list({R"({"op": "place", "filter": {"PP": 0}, "devices": [-1]})"})),
             ContainsSubstring("a device is a number"));
  CHECK_THAT(piper_complaint(list({R"({"op": "split", "filter": {}, "dim_name": "MB"})"})),
             ContainsSubstring("\"num_microbatches\" from 1"));
  CHECK_THAT(piper_complaint(list({R"({"op": "place", "filter": {"PP": 0}, "devices": [0, 0]})"})),
             ContainsSubstring("device 0 is named twice"));
  CHECK_THAT(
      piper_complaint(list({kPlace, R"({"op": "place", "filter": {"PP": 1}, "devices": [0, 1]})"})),
      ContainsSubstring("device 0 is in two sets"));
  CHECK_THAT(piper_complaint(list(
                 {R"({"op": "split", "filter": {}, "dim_name": "PP", "num_microbatches": 2})"})),
             ContainsSubstring("'PP' is the tag of something else"));
  const auto order = [](const std::string& filters) {
    return piper_complaint(
        list({kSplit, kPlace, R"({"op": "order", "filters": )" + filters + "}"}));
  };
  CHECK_THAT(order(R"([[{"PP": 0, "MB": 0, "PASS": "F"}]])"), ContainsSubstring("two groups"));
  CHECK_THAT(order(R"([[{"PP": 0, "MB": 1, "PASS": "F"}], [{"PP": 0, "MB": 0, "PASS": "B"}]])"),
             ContainsSubstring("split into 1"));
  CHECK_THAT(order(R"([[{"PP": 0, "MB": "*", "PASS": "F"}], [{"PP": 0, "MB": 0, "PASS": "B"}]])"),
             ContainsSubstring("matches one task"));
  CHECK_THAT(
      order(R"([[{"PP": 0, "MB": 0, "EP": 0, "PASS": "F"}], [{"PP": 0, "MB": 0, "PASS": "B"}]])"),
      ContainsSubstring("exactly the tags PP, MB and PASS"));
  CHECK_THAT(order(R"([[{"PP": 0, "MB": 0, "PASS": "W"}]])"), ContainsSubstring("F, B, BI or BW"));
  CHECK_THAT(order("[[]]"), ContainsSubstring("one filter or more"));
  CHECK_THAT(order("[{}]"), ContainsSubstring("the filters of a group"));
  (void)piper_complaint("");
  (void)piper_complaint("[");
  (void)piper_complaint("[1]");
  (void)piper_complaint("{}");
}

TEST_CASE("all faults of the directives are told at once", "[scheduler][piper]") {
  CHECK_THAT(
      piper_complaint(list({R"({"op": "ordr"})", R"({"op": "place", "filter": {}})", kSplit})),
      ContainsSubstring("2 faults") && ContainsSubstring("'ordr'") &&
          ContainsSubstring("line 2, column 2: a place directive"));
  const std::string order =
      R"({"op": "order", "filters": [[{"PP": 1, "MB": 0, "PASS": "F"}], [{"PP": 0, "MB": 7, "PASS": "B"}]]})";
  CHECK_THAT(piper_complaint(list({kSplit, kPlace, order})),
             ContainsSubstring("2 faults") && ContainsSubstring("no directive places stage 1") &&
                 ContainsSubstring("MB is 7, but the step is split into 1"));
}

TEST_CASE("an order over two sets of devices is refused", "[scheduler][piper]") {
  CHECK_THAT(
      piper_complaint(list(
          {kSplit,
           kPlace,
           R"({"op": "place", "filter": {"PP": 1}, "devices": [1]})",
           R"({"op": "order", "filters": [[{"PP": 0, "MB": 0, "PASS": "F"}], [{"PP": 1, "MB": 0, "PASS": "F"}]]})"})),
      ContainsSubstring("of [0] and of [1]"));
}

TEST_CASE("what Piper has no word for is refused", "[scheduler][piper]") {
  CHECK_THAT(not_written(Schedule::parse("0F0 0B0 0U")), ContainsSubstring("update"));
  CHECK_THAT(not_written(Schedule::parse("0F0 0B0\n1F0 .")), ContainsSubstring("row 1 has 1"));
  CHECK_THAT(not_written(Schedule::parse("0F0 0B0\n1F0 0F1")),
             ContainsSubstring("Piper places a stage once"));
  CHECK_THAT(not_written(Schedule::parse("@sizes 1,2\n0F0 0F1\n. . 1F0 1B0")),
             ContainsSubstring("different sizes"));
  CHECK_THAT(not_written(dualpipe(4, 8)), ContainsSubstring("not part of one chain"));
}

}  // namespace
}  // namespace stagecraft
