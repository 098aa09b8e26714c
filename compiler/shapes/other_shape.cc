#include "stagecraft/compiler/shapes/other_shape.h"

#include <algorithm>

#include <fmt/format.h>

namespace stagecraft {
namespace {

template <class T>
std::string missing(const std::vector<T>& here, const std::vector<T>& there) {
  for (const T& one : here) {
    if (std::ranges::find(there, one.position, &T::position) == there.end()) {
      return one.name;
    }
  }
  return {};
}

/// Compares the parameters or the buffers of two stages.
template <class T>
std::string other_tensors(const std::vector<T>& program,
                          const std::vector<T>& stage,
                          std::string_view what) {
  if (const std::string gone = missing(program, stage); !gone.empty()) {
    return fmt::format("does not use the {} {} any more", what, gone);
  }
  if (const std::string come = missing(stage, program); !come.empty()) {
    return fmt::format("uses the {} {} too", what, come);
  }
  if (!std::ranges::equal(program, stage, {}, &T::position, &T::position) ||
      !std::ranges::equal(program, stage, {}, &T::name, &T::name)) {
    return fmt::format("has its {}s in another order", what);
  }
  return {};
}

bool look_alike(const Value& a, const Value& b) {
  return a.sizes == b.sizes && a.dtype == b.dtype && a.requires_grad == b.requires_grad;
}

std::string other_parameters(const StageProgram& program, const StageProgram& stage) {
  for (std::size_t i = 0; i < program.parameters.size(); ++i) {
    const StageParameter& before = program.parameters[i];
    const StageParameter& now = stage.parameters[i];
    if (before.trained != now.trained) {
      return fmt::format("{} {}", now.trained ? "trains" : "does not train", before.name);
    }
    if (!look_alike(program.at(before.value), stage.at(now.value))) {
      return fmt::format("has {} in another shape or type", before.name);
    }
  }
  return {};
}

std::string other_buffers(const StageProgram& program, const StageProgram& stage) {
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const StageBuffer& before = program.buffers[i];
    const StageBuffer& now = stage.buffers[i];
    if (before.written != now.written) {
      return fmt::format(
          "{} the buffer {}", now.written ? "writes" : "does not write", before.name);
    }
    if (before.strides != now.strides ||
        !look_alike(program.at(before.value), stage.at(now.value))) {
      return fmt::format("has the buffer {} in another shape or type", before.name);
    }
  }
  return {};
}

std::string other_border(const StageProgram& program, const StageProgram& stage) {
  const auto same_input = [](const StageInput& a, const StageInput& b) {
    return a.source == b.source && a.position == b.position && a.from == b.from &&
           a.owes_gradient == b.owes_gradient;
  };
  const auto same_output = [](const StageOutput& a, const StageOutput& b) {
    return a.consumers == b.consumers && a.gradient_from == b.gradient_from && a.kept == b.kept;
  };
  if (!std::ranges::equal(program.inputs, stage.inputs, same_input)) {
    return fmt::format(
        "reads {} values from outside, and {} in the program, or reads them from other stages or "
        "with other gradients",
        stage.inputs.size(),
        program.inputs.size());
  }
  if (!std::ranges::equal(program.outputs, stage.outputs, same_output)) {
    return fmt::format(
        "hands on {} values, and {} in the program, or hands them to other stages or with other "
        "gradients",
        stage.outputs.size(),
        program.outputs.size());
  }
  if ((program.loss == kNoValue) != (stage.loss == kNoValue)) {
    return stage.loss == kNoValue ? "does not compute the loss" : "computes the loss";
  }
  return {};
}

}  // namespace

std::string misfit_of_evaluation(const StageProgram& program, const StageProgram& stage) {
  const auto unlike = [&](const auto& held, const auto& used) -> bool {
    const auto found =
        std::ranges::find(held, used.position, [](const auto& one) { return one.position; });
    return found == held.end() || found->name != used.name ||
           !look_alike(program.at(found->value), stage.at(used.value));
  };
  if (std::ranges::any_of(stage.chunks, &Chunk::divided)) {
    return "divides weights among ranks, and evaluations do not";
  }
  for (const StageParameter& parameter : stage.parameters) {
    if (parameter.trained || unlike(program.parameters, parameter)) {
      return fmt::format(
          "uses the parameter {}, which it does not use in training or has in another form there",
          parameter.name);
    }
  }
  for (const StageBuffer& buffer : stage.buffers) {
    if (unlike(program.buffers, buffer)) {
      return fmt::format(
          "uses the buffer {}, which it does not use in training or has in another form there",
          buffer.name);
    }
  }
  return {};
}

std::string misfit(const StageProgram& program, const StageProgram& stage) {
  if (!std::ranges::equal(program.chunks, stage.chunks, {}, &Chunk::divided, &Chunk::divided)) {
    return "divides other chunks among ranks";
  }
  std::string found = other_tensors(program.parameters, stage.parameters, "parameter");
  found = found.empty() ? other_tensors(program.buffers, stage.buffers, "buffer") : found;
  found = found.empty() ? other_parameters(program, stage) : found;
  found = found.empty() ? other_buffers(program, stage) : found;
  return found.empty() ? other_border(program, stage) : found;
}

}  // namespace stagecraft
