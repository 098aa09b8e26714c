/// The conformance suite of rules. Every number of the registry has a schedule here that breaks
/// only this rule; tests of single rules have further cases.
#include "stagecraft/scheduler/rules/registry.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using namespace cells;

/// A schedule that breaks a rule.
struct Broken {
  std::string rule;
  Schedule schedule;
  ValidateOptions options = {};
  std::optional<StageGraph> graph = {};        ///< absent: the schedule's own
  std::vector<CommAction> communication = {};  ///< that the file lists
  std::set<std::string> also = {};             ///< rules that follow from it in every schedule
};

Broken text(const char* rule, const char* schedule, const ValidateOptions& options = {}) {
  return {rule, Schedule::parse(schedule), options};
}

Broken csv(const char* rule, const char* file) {
  ReadSchedule read = parse_pytorch_csv(file);
  return {.rule = rule,
          .schedule = std::move(read.schedule),
          .communication = std::move(read.communication)};
}

/// Makes a schedule that no text can hold: a forward, a backward, and a third cell.
Broken third(const char* rule, Cell cell) {
  return {rule, Schedule{{F(0, 0), B(0, 0), std::move(cell)}}};
}

StageGraph tied() {
  StageGraph graph = StageGraph::chain(2);
  graph.add_tied({.name = "embedding", .stages = {StageId(0), StageId(1)}});
  return graph;
}

/// A new rule adds a line.
std::vector<Broken> cases() {
  return {
      text("V01", "0F0 . . 0B0\n. 1F0 1B0"),
      text("V02", "@rows 3\n0F0 . . 0B0\n. 1F0 1B0 ."),
      third("V03", Cell(Task{})),
      third("V04", F(-1, 0)),
      third("V05", B(0, -2)),
      third("V06", Cell(Task{static_cast<CellKind>(9), StageId(0), Microbatch(0)})),
      text("V07", "0F0 . . .\n. 1F0 1B0 0B0"),
      text("V08", "0F0 0F0 0B0"),
      text("V09", "0F0", {.microbatches = 2, .forward_only = true}),
      text("V10", "0F0 0F1 0B0"),
      text("V11", "0F0 0B0 0I0 0W0"),
      text("V12", "0F0 0I0"),
      text("V20", "0F0 . . 0B0\n1F0 . 1B0 ."),
      text("V21", "0B0 0F0"),
      text("V22", "0F0 . 0B0 .\n. 1F0 . 1B0"),
      text("V23", "0F0 0W0 0I0"),
      csv("V24", "0F0,0REDUCE_GRAD,0B0"),
      csv("V25", "0UNSHARD,0F0,0RESHARD,0B0"),
      text("V26", "0F0 0B0 0U 0U"),
      text("V27", "0F1 0F0 0B0 0B1", {.microbatch_order = true}),
      text("V28", "@form list\n0F0|0F0 0B0"),
      text("V29", "@form list\n0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"),
      text("V30", "0F0 0B0", {.memory = MemoryModel{.activations = {10}, .budget = 5}}),
      csv("V31",
          "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
          "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1"),
      {.rule = "V32",
       .schedule = Schedule::parse("@form list\n@edges 0-1,1-0\n0F0 0B0\n1F0 1B0"),
       .also = {"V29"}},  // no order of tasks can follow a cycle
      {.rule = "V33", .schedule = one_f_one_b(2, 1), .graph = tied()},
      text("V34", "@microbatches 3\n@sizes 2\n0F0 0B0"),
      {.rule = "V35",
       .schedule = one_f_one_b(4, 8),
       .options = {.ordered_transfers = TransferStreams::OnePerRank}},
  };
}

/// Returns the numbers of all lines of the table.
std::set<std::string> numbers() {
  std::set<std::string> all;
  for (const rules::RuleInfo& info : rules::rule_table()) {
    all.insert(info.numbers.begin(), info.numbers.end());
  }
  return all;
}

TEST_CASE("every rule is broken by a schedule that breaks only it", "[scheduler][rules]") {
  std::set<std::string> covered;
  for (Broken& broken : cases()) {
    CAPTURE(broken.rule);
    broken.options.communication = broken.communication;
    const StageGraph graph = broken.graph.value_or(broken.schedule.stage_graph());
    std::set<std::string> expected = broken.also;
    expected.insert(broken.rule);
    std::set<std::string> found;
    for (const Violation& v : validate(broken.schedule, graph, broken.options)) {
      found.insert(v.rule);
      CHECK(v.message.size() > 20);
      CHECK_FALSE(v.message.ends_with('.'));
      CHECK(v.row < static_cast<int>(broken.schedule.rows().size()));
    }
    CHECK(found == expected);
    covered.insert(broken.rule);
  }
  CHECK(covered == numbers());
}

TEST_CASE("no rule finds anything in a valid schedule", "[scheduler][rules]") {
  const ValidateOptions strict{.microbatches = 8,
                               .devices = 4,
                               .microbatch_order = true,
                               .memory = MemoryModel{.activations = {1, 1, 1, 1}, .budget = 4},
                               .ordered_transfers = TransferStreams::PerPeerAndDirection};
  for (const Schedule& schedule : {one_f_one_b(4, 8), one_f_one_b(4, 8).to_list()}) {
    CHECK(validate(schedule, schedule.stage_graph(), strict).empty());
  }
}

TEST_CASE("every line of the table says what a schedule must have", "[scheduler][rules]") {
  for (const rules::RuleInfo& info : rules::rule_table()) {
    CAPTURE(info.summary);
    CHECK_FALSE(info.numbers.empty());
    CHECK_FALSE(info.summary.empty());
    CHECK(info.check != nullptr);
    CHECK(std::ranges::is_sorted(info.numbers));
  }
}

struct RuleFile {
  std::string first;
  std::string last;
  std::string text;
};

/// Returns the sources of rules/ named for a rule ("v30_memory.cc") or a range
/// ("v20_v23_columns.cc").
std::map<std::string, RuleFile> rule_files() {
  std::map<std::string, RuleFile> files;
  for (const fs::directory_entry& file : fs::directory_iterator("scheduler/rules")) {
    const std::string name = file.path().filename().string();
    if (name.starts_with('v') && std::isdigit(name.at(1)) != 0 && name.ends_with(".cc")) {
      const std::string first = "V" + name.substr(1, 2);
      const bool range = name.substr(3, 2) == "_v" && name.at(7) == '_';
      std::ifstream in(file.path());
      files[name] = {
          first, range ? "V" + name.substr(5, 2) : first, {std::istreambuf_iterator<char>(in), {}}};
    }
  }
  return files;
}

TEST_CASE("every rule is judged in a file that has its number in its name", "[scheduler][rules]") {
  const auto files = rule_files();
  for (const std::string& rule : numbers()) {
    CAPTURE(rule);
    CHECK(std::ranges::any_of(files, [&](const auto& entry) {
      const RuleFile& file = entry.second;
      return file.first <= rule && rule <= file.last &&
             file.text.find('"' + rule + '"') != std::string::npos;
    }));
  }
}

TEST_CASE("a file of rules names no rule that it does not judge", "[scheduler][rules]") {
  for (const auto& [name, file] : rule_files()) {
    CAPTURE(name);
    CHECK(file.first <= file.last);
    for (const std::string& rule : {file.first, file.last}) {
      CHECK(file.text.find('"' + rule + '"') != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace stagecraft
