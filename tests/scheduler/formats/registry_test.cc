/// The conformance suite of file formats. Every format of the registry passes it without a line of
/// its own here; a format's own test holds examples of its text.
#include "stagecraft/scheduler/formats/registry.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using formats::FormatWords;
using formats::GraphWords;
using formats::GroupWords;

struct Sample {
  std::string name;
  Schedule schedule;
};

void add_both_forms(const std::string& name, const Schedule& schedule, std::vector<Sample>& all) {
  all.push_back({name, schedule});
  all.push_back({name + ", list", schedule.to_list()});
}

/// Returns valid schedules: those of every builder, and one for each thing that no builder makes.
std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const BuilderInfo& builder : builders()) {
    const std::string name(builder.name);
    if (builder.takes_graph) {
      for (const StageGraph& graph :
           {StageGraph::chain(3), StageGraph::from_edges(3, {{0, 2}, {1, 2}})}) {
        add_both_forms(
            name, build_schedule(builder.name, {.microbatches = 4, .graph = graph}), all);
      }
      continue;
    }
    for (const int devices : {2, 4}) {
      add_both_forms(
          name,
          build_schedule(builder.name, {.devices = devices, .microbatches = 2 * devices}),
          all);
    }
  }
  add_both_forms("update", Schedule::parse("0F0 . . 0B0 0U\n. 1F0 1B0 1U ."), all);
  add_both_forms("frozen stage", Schedule::parse("@frozen 0\n0F0 0F1 . .\n. 1F0 1F1|1B0 1B1"), all);
  add_both_forms("sizes",
                 Schedule::parse("@microbatches 4\n@sizes 1,2\n"
                                 "0F0 0F1 0F2 0F3 . . 0B0 0B1 0B2 0B3\n"
                                 ". . 1F0 . 1F1 1B0 1B1 . . ."),
                 all);
  add_both_forms("backward before forward", Schedule::parse("0F0 0B0|0F1 0B1"), all);
  add_both_forms("three in a group", Schedule::parse("0F0 0F1 0F2|0F3|0B0 0B1 0B2 0B3"), all);
  return all;
}

bool can_group(GroupWords words, const Cell& cell) {
  const auto tasks = cell.tasks();
  switch (words) {
    case GroupWords::Any:
      return true;
    case GroupWords::Independent: {
      std::set<std::pair<StageId, Microbatch>> work;
      return std::ranges::all_of(tasks, [&](const Task& task) {
        return work.emplace(task.stage, task.microbatch).second;
      });
    }
    case GroupWords::ForwardWithBackward:
      return tasks.size() == 2 && tasks[0].kind == CellKind::Forward &&
             tasks[1].kind == CellKind::Backward;
    case GroupWords::None:
      break;
  }
  return false;
}

/// Returns whether a format of these words can hold the schedule.
bool can_hold(const FormatWords& words, const Schedule& schedule) {
  const StageGraph graph = schedule.stage_graph();
  const bool plain =
      graph.replicas() == 1 && graph.frozen().empty() && graph.microbatch_sizes().empty();
  if (words.graph != GraphWords::Any && !plain) {
    return false;
  }
  if (words.graph == GraphWords::Chain && !graph.is_chain()) {
    return false;
  }
  return std::ranges::all_of(schedule.rows(), [&](const Schedule::Row& row) {
    return std::ranges::all_of(row, [&](const Cell& cell) {
      const bool updates = std::ranges::any_of(
          cell.tasks(), [](const Task& task) { return task.kind == CellKind::Update; });
      return (words.updates || !updates) && (!cell.is_group() || can_group(words.groups, cell));
    });
  });
}

bool has_bubbles(const Schedule& schedule) {
  return std::ranges::any_of(schedule.rows(), [](const Schedule::Row& row) {
    return std::ranges::any_of(row, &Cell::idle);
  });
}

/// Returns the schedule that reading must give: in the format's form, without bubbles if it has
/// none.
Schedule as_read(const Schedule& schedule, const ScheduleFormat& format) {
  if (!format.words.bubbles) {
    return schedule.to_list();
  }
  return format.form == Schedule::Form::Array && schedule.form() == Schedule::Form::List
             ? to_array(schedule, schedule.stage_graph())
             : schedule;
}

void check_graph(const StageGraph& read, const StageGraph& written, GraphWords words) {
  if (words == GraphWords::Model && !written.is_chain()) {
    return;  // the file does not hold it
  }
  CHECK(read.edges() == written.edges());
  CHECK(read.replica_pairs() == written.replica_pairs());
  CHECK(read.frozen() == written.frozen());
  CHECK(read.microbatch_sizes() == written.microbatch_sizes());
}

TEST_CASE("every format has a name, a summary and words of its own", "[scheduler][formats]") {
  std::set<std::string_view> names;
  for (const ScheduleFormat& format : schedule_formats()) {
    CAPTURE(format.name);
    CHECK(names.insert(format.name).second);
    CHECK(&find_format(format.name) == &format);
    CHECK_FALSE(format.summary.empty());
    CHECK_FALSE(format.words.name.empty());
    REQUIRE(format.read != nullptr);
  }
}

TEST_CASE("an unknown format is answered with the nearest", "[scheduler][formats]") {
  CHECK_THAT(refusal([] { (void)find_format("txt"); }),
             ContainsSubstring("no format is called 'txt'; did you mean text? there are text,"));
}

TEST_CASE("every format holds each schedule that it has words for, and refuses the others",
          "[scheduler][formats]") {
  for (const ScheduleFormat& format : schedule_formats()) {
    if (format.write == nullptr) {
      continue;
    }
    int written = 0;
    for (const auto& [name, schedule] : samples()) {
      CAPTURE(format.name, name);
      const StageGraph graph = schedule.stage_graph();
      if (!can_hold(format.words, schedule)) {
        CHECK_THAT(refusal([&] { (void)write_schedule(schedule, graph, format); },
                           Errc::ScheduleParameter),
                   ContainsSubstring(std::string(format.words.name) + " cannot"));
        continue;
      }
      ++written;
      const std::string text = write_schedule(schedule, graph, format);
      const ReadSchedule read = format.read(text);
      const Schedule expected = as_read(schedule, format);
      CHECK(read.schedule.to_list() == expected.to_list());
      CHECK((!has_bubbles(expected) || read.schedule == expected));
      CHECK(read.schedule.microbatches() == schedule.microbatches());
      CHECK(read.left_out.empty());
      check_graph(read.schedule.stage_graph(), graph, format.words.graph);
      CHECK(read.communication.empty() != format.communicates);
      CHECK(validate(read.schedule, graph, {.communication = read.communication}).empty());
      if (format.words.graph != GraphWords::Model) {
        CHECK(write_schedule(read.schedule, read.schedule.stage_graph(), format) == text);
      }
      const ScheduleFormat& detected = detect_format(text, "");
      CHECK(detected.read(text).schedule == read.schedule);
    }
    CAPTURE(format.name);
    CHECK(written > 10);
  }
}

TEST_CASE("a list that cannot run to its end has no columns, and keeps its order as a list",
          "[scheduler][formats]") {
  const Schedule stuck = Schedule::parse("@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1");
  const StageGraph graph = stuck.stage_graph();
  for (const ScheduleFormat& format : schedule_formats()) {
    CAPTURE(format.name);
    if (format.form == Schedule::Form::Array || format.communicates) {
      (void)refusal([&] { (void)write_schedule(stuck, graph, format); }, Errc::ScheduleInvalid);
    } else if (format.write != nullptr) {
      CHECK(format.read(write_schedule(stuck, graph, format)).schedule == stuck);
    }
  }
}

/// Reads what need not be a schedule. Returns whether the format accepted it; then validate() must
/// cope with it.
bool accepts(const ScheduleFormat& format, const std::string& text) {
  std::optional<ReadSchedule> read;
  try {
    read = format.read(text);
  } catch (const Error& error) {
    CHECK(error.code() == Errc::ScheduleParse);
    CHECK_FALSE(error.message().empty());
    return false;
  }
  for (const Violation& v : validate(
           read->schedule, read->schedule.stage_graph(), {.communication = read->communication})) {
    CHECK_FALSE(v.message.empty());
  }
  return true;
}

TEST_CASE("a file that is cut off anywhere is a schedule or an Error", "[scheduler][formats]") {
  const Schedule schedule = one_f_one_b(2, 2);
  for (const ScheduleFormat& format : schedule_formats()) {
    CAPTURE(format.name);
    const std::string text = write_schedule(schedule, schedule.stage_graph(), format);
    for (std::size_t length = 0; length < text.size(); ++length) {
      CAPTURE(length);
      (void)accepts(format, text.substr(0, length));
    }
    CHECK_FALSE(accepts(format, ""));
    CHECK(accepts(format, text));
  }
}

TEST_CASE("a file with a wrong byte anywhere is a schedule or an Error", "[scheduler][formats]") {
  const Schedule schedule = one_f_one_b(2, 2);
  for (const ScheduleFormat& format : schedule_formats()) {
    const std::string text = write_schedule(schedule, schedule.stage_graph(), format);
    for (const char wrong : {'\0', '9', '-', '{', '[', ')', '"', ',', '\n', '\xff'}) {
      CAPTURE(format.name, wrong);
      for (std::size_t at = 0; at < text.size(); ++at) {
        std::string broken = text;
        broken[at] = wrong;
        (void)accepts(format, broken);
      }
    }
  }
}

TEST_CASE("a file that is none is refused by every format", "[scheduler][formats]") {
  for (const ScheduleFormat& format : schedule_formats()) {
    for (const char* text :
         {" \n\t\n", "]", "{", "no schedule at all", "0X0", "\x7f\x45\x4c\x46"}) {
      CAPTURE(format.name, text);
      CHECK_FALSE(accepts(format, text));
    }
  }
}

TEST_CASE("every format tells 20 faults at once and counts the others", "[scheduler][formats]") {
  // One cell for each microbatch from 5000 on, whose numbers then become too large.
  std::vector<Schedule::Row> rows(1);
  for (int m = 5000; m < 5040; ++m) {
    rows[0].push_back(cells::F(0, m));
  }
  const Schedule schedule(Schedule::Form::List, std::move(rows));
  for (const ScheduleFormat& format : schedule_formats()) {
    if (format.communicates || format.form == Schedule::Form::Array) {
      continue;  // another format writes the same cells
    }
    CAPTURE(format.name);
    std::string text = write_schedule(schedule, schedule.stage_graph(), format);
    for (int m = 5000; m < 5040; ++m) {
      const std::string number = std::to_string(m);
      for (std::size_t at = 0; (at = text.find(number, at)) != std::string::npos; at += 8) {
        text.insert(at, "9999");
      }
    }
    const std::string all = refusal([&] { (void)format.read(text); }, Errc::ScheduleParse);
    CAPTURE(all);
    CHECK_THAT(all,
               ContainsSubstring("40 faults\nline 1") || ContainsSubstring("40 faults\nline "));
    CHECK(std::ranges::count(all, '\n') == 21);
    CHECK_THAT(all, ContainsSubstring("\nand 20 more"));
  }
}

TEST_CASE("a file's ending decides only if its rows do not", "[scheduler][formats]") {
  CHECK(detect_format("0F0\n1F0\n", "x.csv").name == "pytorch");
  CHECK(detect_format("0F0\n1F0\n", "x.txt").name == "text");
  CHECK(detect_format("{\"rows\": []}", "x.csv").name == "json");
  CHECK(detect_format("# a, b\n0F0 0B0 # c, d\n", "").name == "text");
  CHECK(detect_format("@edges 0-1,1-2\n0F0\n", "").name == "text");
  CHECK(detect_format("", "").name == "text");
}

}  // namespace
}  // namespace stagecraft
