#include "stagecraft/compiler/program/replay_check.h"

#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/flip.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/compiler/capture/parameter_gradients.h"
#include "stagecraft/compiler/libtorch/same_bits.h"
#include "stagecraft/compiler/libtorch/type_text.h"
#include "stagecraft/compiler/stage/interpreter.h"
#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

/// Checks that the buckets and the optimizers can hold the gradient.
void check_trainable(const NamedTensor& parameter, const at::Tensor& gradient) {
  if (!gradient.defined()) {
    return;
  }
  if (gradient.layout() != at::kStrided) {
    throw Error(Errc::CompileCapture,
                fmt::format("the gradient of {} is sparse, which no optimizer here takes: make it "
                            "dense (for an Embedding, leave .sparse(true) out)",
                            parameter.name));
  }
  if (!parameter.tensor.is_floating_point()) {
    throw Error(Errc::CompileCapture,
                fmt::format("the parameter {} is {}, which no optimizer here takes: hold its real "
                            "and imaginary part as two parameters, or freeze it",
                            parameter.name,
                            type_text(parameter.tensor.scalar_type())));
  }
}

/// Returns tensors of the same shapes with the same values in reverse order. They differ from the
/// given ones even if the batch is one microbatch, and token ids remain ids.
Tensors in_other_order(const Tensors& tensors) {
  Tensors result;
  for (const at::Tensor& t : tensors) {
    result.push_back(t.dim() == 0 ? t : t.flatten().flip(0).view(t.sizes()));
  }
  return result;
}

/// SecondRun holds a second microbatch and the module's results on it.
struct SecondRun {
  Tensors inputs, labels;
  EagerResult eager;
};

SecondRun run_second(const Workload& workload, const Tensors& inputs, const Tensors& labels) {
  try {
    SecondRun other{in_other_order(inputs), in_other_order(labels), {}};
    other.eager = run_eagerly(workload, other.inputs, other.labels, kProbeKey);
    return other;
  } catch (const Error&) {
    // Offsets must begin with 0, and lengths must rise. If this run throws too, the fault is the
    // module's, not the order's.
    return {inputs, labels, run_eagerly(workload, inputs, labels, kProbeKey)};
  }
}

/// Returns outputs, then metrics, as a replay does.
Tensors made_by(const EagerResult& eager) {
  Tensors made = eager.outputs;
  made.insert(made.end(), eager.metrics.begin(), eager.metrics.end());
  return made;
}

/// Returns the name of the first result that differs; empty if none does.
std::string first_difference(const EagerResult& eager,
                             const Tensors& made,
                             const at::Tensor& loss) {
  const Tensors wanted = made_by(eager);
  const std::size_t outputs = eager.outputs.size();
  for (std::size_t i = 0; i < outputs; ++i) {
    if (!same_bits(wanted[i], made[i])) {
      return fmt::format("output {}", i);
    }
  }
  if (!same_bits(eager.loss, loss)) {
    return "the loss";
  }
  for (std::size_t i = outputs; i < wanted.size(); ++i) {
    if (!same_bits(wanted[i], made[i])) {
      return fmt::format("metric {}", i - outputs);
    }
  }
  return {};
}

Tensors values_of_run(Tensors inputs, const Tensors& labels) {
  inputs.insert(inputs.end(), labels.begin(), labels.end());
  return inputs;
}

/// Errors: CompileCapture if `what` names a difference.
void require_none(const std::string& what) {
  if (!what.empty()) {
    throw Error(Errc::CompileCapture,
                fmt::format("{} of a second microbatch differs between the module and the replay "
                            "of the captured operators; the module reads values where no operator "
                            "shows it (data_ptr, accessor, printing), or keeps state outside of "
                            "registered buffers: use operators, and register the state",
                            what));
  }
}

/// Errors: CompileCapture if `what` names a difference between two runs of the module.
void require_same_again(const std::string& what) {
  if (!what.empty()) {
    throw Error(Errc::CompileCapture,
                fmt::format("{} differs when the module is called again with the same values: it "
                            "depends on how often the module was called, and a replay would repeat "
                            "the first call; keep counters and other state in registered buffers, "
                            "and change them by operators",
                            what));
  }
}

}  // namespace

void check_against_eager(const Workload& workload,
                         const Graph& graph,
                         const Tensors& inputs,
                         const Tensors& labels) {
  const SecondRun second = run_second(workload, inputs, labels);
  const EagerResult& eager = second.eager;
  const StageProgram whole = whole_program(graph);
  const ChunkInterpreter interpreter(whole, whole.chunks.front());
  const at::AutoGradMode grad(workload.trains);
  const StageState state = probe_state(graph, whole);
  const ChunkResult replay =
      interpreter.run(values_of_run(second.inputs, second.labels), state, kProbeKey);
  require_none(first_difference(eager, replay.outputs, replay.loss));

  // Run it twice more: counters and state kept from earlier calls then show.
  const auto run_again = [&](const Tensors& i, const Tensors& l) {
    return run_eagerly(workload, i, l, kProbeKey, EagerPass::Forward);
  };
  const EagerResult again = run_again(second.inputs, second.labels);
  require_same_again(first_difference(eager, made_by(again), again.loss));
  const EagerResult given = run_again(inputs, labels);
  const ChunkResult replay_of_given =
      interpreter.run(values_of_run(inputs, labels), probe_state(graph, whole), kProbeKey);
  require_none(first_difference(given, replay_of_given.outputs, replay_of_given.loss));
  if (!workload.trains) {
    return;
  }
  const Tensors& wanted = eager.gradients;
  Tensors found(wanted.size());  // parameters that the graph does not read have none
  const Tensors read = parameter_gradients(replay.loss, state.parameters);
  for (std::size_t i = 0; i < read.size(); ++i) {
    found[static_cast<std::size_t>(whole.parameters[i].position)] = read[i];
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    check_trainable(graph.parameters[i], wanted[i]);
    if (!same_bits(wanted[i], found[i])) {
      throw Error(
          Errc::CompileCapture,
          fmt::format("the gradient of {} on a second microbatch differs between the module and "
                      "the replay of the captured operators; the module changes gradients where no "
                      "operator, custom function or tensor hook shows it: use these, and keep no "
                      "state of your own between backwards",
                      graph.parameters[i].name));
    }
  }
}

}  // namespace stagecraft
