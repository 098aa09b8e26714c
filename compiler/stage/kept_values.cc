#include "stagecraft/compiler/stage/kept_values.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Errors: UsageArgument for an output that no rank makes.
void require_made(const Graph& graph, int output) {
  const std::vector<ValueId>& all = graph.outputs;
  if (output < 0 || static_cast<std::size_t>(output) >= all.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("CompileOptions::keep names output {}, and the module returns {}, "
                            "numbered from 0",
                            output,
                            all.size()));
  }
  const Value& value = graph.at(all[static_cast<std::size_t>(output)]);
  if (value.kind != ValueKind::Computed) {
    throw Error(Errc::UsageArgument,
                fmt::format("CompileOptions::keep names output {}, which no operator makes: it is "
                            "an input, a parameter, a buffer or a constant; leave it out",
                            output));
  }
  if (is_driver_code(graph.nodes[static_cast<std::size_t>(value.position)])) {
    throw Error(Errc::UsageArgument,
                fmt::format("CompileOptions::keep names output {}, which code of the driver makes "
                            "(sc::on_driver): take it there, or leave it out",
                            output));
  }
}

}  // namespace

Partition partition_keeping(const Graph& graph,
                            const StageAssignment& assignment,
                            const KeptValues& keep) {
  std::vector<ValueId> kept;
  for (const int output : keep.outputs) {
    require_made(graph, output);
    kept.push_back(graph.outputs[static_cast<std::size_t>(output)]);
  }
  if (keep.losses &&
      is_driver_code(graph.nodes[static_cast<std::size_t>(graph.at(graph.loss).position)])) {
    throw Error(Errc::UsageArgument,
                "CompileOptions::keep names the losses, which code of the driver makes "
                "(sc::on_driver): take them there, or leave keep.losses out");
  }
  Partition made = partition(graph, assignment, kept);
  for (StageProgram& stage : made.stages) {
    stage.keeps_loss = keep.losses && stage.loss != kNoValue;
    for (StageOutput& output : stage.outputs) {
      for (const int number : keep.outputs) {
        if (graph.outputs[static_cast<std::size_t>(number)] == output.value) {
          output.kept.push_back(number);
        }
      }
    }
  }
  return made;
}

}  // namespace stagecraft
