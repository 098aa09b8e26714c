#include "stagecraft/compiler/program/cut_report.h"

#include <cstddef>
#include <set>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/compiler/graph/operator_paths.h"

namespace stagecraft {
namespace {

void add_operator(StageCut& stage, int number) {
  if (stage.operators++ == 0) {
    stage.first = number;
  }
  if (stage.ranges.empty() || stage.ranges.back().second + 1 != number) {
    stage.ranges.emplace_back(number, number);
  }
  stage.ranges.back().second = number;
}

}  // namespace

CutReport cut_report(const Graph& graph,
                     const StageAssignment& assignment,
                     std::vector<OperatorCost> costs) {
  CutReport report{.stages = std::vector<StageCut>(assignment.names.size()),
                   .operators = std::move(costs),
                   .operator_hash = hash_of_operators(operator_names(graph))};
  const std::vector<std::string> own = own_paths(graph);
  std::vector<std::set<ValueId>> parameters(report.stages.size());
  std::set<ValueId> crossing;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto s = static_cast<std::size_t>(assignment.stage_of[n]);
    StageCut& stage = report.stages[s];
    add_operator(stage, static_cast<int>(n));
    for (const ValueId read : reads_of(graph.nodes[n])) {
      const Value& value = graph.at(read);
      const auto bytes = static_cast<double>(bytes_of(value));
      if (value.kind == ValueKind::Parameter && parameters[s].insert(read).second) {
        stage.parameter_bytes += bytes;
      }
      if (value.kind == ValueKind::Computed) {
        const auto from =
            static_cast<std::size_t>(assignment.stage_of[static_cast<std::size_t>(value.position)]);
        if (from != s && crossing.insert(read).second) {
          report.stages[from].crossing_bytes += bytes;
        }
      }
    }
    if (!report.operators.empty()) {
      OperatorCost& cost = report.operators[n];
      cost.stage = StageId(s);
      stage.time += cost.time();
    }
  }
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    StageCut& stage = report.stages[s];
    stage.name = assignment.names[s];
    if (stage.first > 0) {
      stage.place = place_before(graph, own, static_cast<std::size_t>(stage.first));
    }
  }
  return report;
}

std::string to_string(const CutReport& report) {
  std::string text;
  for (std::size_t s = 0; s < report.stages.size(); ++s) {
    const StageCut& stage = report.stages[s];
    text += fmt::format("stage {}: {}{} from op:{}, {} of parameters, hands on {}{}\n",
                        s,
                        stage.place.empty() ? "" : stage.place + ", ",
                        count_text(stage.operators, "operator"),
                        stage.first,
                        bytes_text(stage.parameter_bytes),
                        bytes_text(stage.crossing_bytes),
                        stage.time > 0 ? fmt::format(", {:.3g} ms", stage.time * 1e3) : "");
  }
  return text;
}

}  // namespace stagecraft
