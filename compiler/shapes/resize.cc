#include "stagecraft/compiler/shapes/resize.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/shape_captures.h"

namespace stagecraft {
namespace {

/// Renaming gives the values of a stage program other names.
class Renaming {
 public:
  /// Gives values at the borders of `stage` the names of those of `like`, and all others new names.
  Renaming(const StageProgram& stage, const StageProgram& like, std::int32_t first_new)
      : first_new_(first_new) {
    for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
      names_[stage.inputs[i].value] = like.inputs[i].value;
    }
    for (std::size_t i = 0; i < stage.outputs.size(); ++i) {
      names_[stage.outputs[i].value] = like.outputs[i].value;
    }
  }

  void operator()(ValueId& value) const {
    if (value == kNoValue) {
      return;
    }
    const auto border = names_.find(value);
    value = border != names_.end() ? border->second : ValueId(value.value + first_new_);
  }
  void operator()(std::vector<ValueId>& values) const {
    for (ValueId& value : values) {
      (*this)(value);
    }
  }
  void operator()(Operand& operand) const {
    if (auto* value = std::get_if<ValueId>(&operand)) {
      (*this)(*value);
    } else if (auto* list = std::get_if<ValueList>(&operand)) {
      (*this)(list->values);
    }
  }
  void operator()(Chunk& chunk) const {
    for (Node& node : chunk.nodes) {
      std::ranges::for_each(node.operands, [this](Operand& operand) { (*this)(operand); });
      (*this)(node.results);
      (*this)(node.writes);
    }
    (*this)(chunk.inputs);
    (*this)(chunk.outputs);
  }

 private:
  std::map<ValueId, ValueId> names_;
  std::int32_t first_new_;
};

StageProgram renamed(StageProgram stage, const Renaming& rename) {
  const auto values_of = [&](auto& all) {
    for (auto& one : all) {
      rename(one.value);
    }
  };
  for (Chunk& chunk : stage.chunks) {
    rename(chunk);
  }
  values_of(stage.inputs);
  values_of(stage.outputs);
  values_of(stage.parameters);
  values_of(stage.buffers);
  values_of(stage.constants);
  rename(stage.loss);
  std::map<ValueId, Value> values;
  for (auto& [id, value] : stage.values) {
    ValueId name = id;
    rename(name);
    values.emplace(name, std::move(value));
  }
  stage.values = std::move(values);
  return stage;
}

/// Returns why the rows of a value cannot be divided between stages of other sizes than 1; empty if
/// they can. `size`: of the stage that has it as `sized`.
std::string why_indivisible(const Value& one, const Value& sized, int size) {
  if (one.sizes.empty()) {
    return "has no dimension";
  }
  std::vector<std::int64_t> expected = one.sizes;
  expected[0] *= size;
  if (sized.sizes != expected) {
    return fmt::format("is of shape [{}] for one microbatch and [{}] for {}",
                       fmt::join(one.sizes, ", "),
                       fmt::join(sized.sizes, ", "),
                       size);
  }
  if (!sized.order.empty() && sized.order.front() != 0) {
    return "does not have its dimension 0 outermost in memory";
  }
  return {};
}

/// Rows of a batch come from the driver in microbatches of size 1 and are joined.
void check_from_driver(const CompiledProgram& program, const StageProgram& stage, int size) {
  for (const StageInput& input : stage.inputs) {
    const bool label = input.source == StageInput::Source::Label;
    if (size == 1 || input.source == StageInput::Source::Stage ||
        (label ? program.labels : program.inputs)[static_cast<std::size_t>(input.position)]
            .replicated) {
      continue;
    }
    const Value& one = program.graph.at(input.value);
    std::string why = why_indivisible(one, stage.at(input.value), size);
    if (why.empty() && one.order != stage.at(input.value).order) {
      why = "has another order in memory than for one microbatch";
    }
    if (!why.empty()) {
      throw Error(Errc::CompileShape,
                  fmt::format("stage {} takes {} as one, and {} {}: compile with a "
                              "contiguous batch",
                              stage.id.value,
                              count_text(size, "microbatch"),
                              value_name(one, input.value),
                              why));
    }
  }
}

/// Keeps RZ-1.
void check_crossing(const CompiledProgram& program, const std::vector<StageProgram>& stages) {
  const auto size_of = [&](StageId s) { return program.stage_graph.microbatch_size(s); };
  for (const StageProgram& consumer : stages) {
    check_from_driver(program, consumer, size_of(consumer.id));
    for (const StageInput& input : consumer.inputs) {
      if (input.source != StageInput::Source::Stage ||
          size_of(input.from) == size_of(consumer.id)) {
        continue;
      }
      const Value& one = program.graph.at(input.value);
      const Value& made = stages[input.from.index()].at(input.value);
      const Value& read = consumer.at(input.value);
      std::string why = why_indivisible(one, made, size_of(input.from));
      why = why.empty() ? why_indivisible(one, read, size_of(consumer.id)) : why;
      if (why.empty() && (made.order != read.order || made.dtype != read.dtype)) {
        why = "has another order in memory or another type in one stage than in the other";
      }
      if (!why.empty()) {
        throw Error(Errc::CompileShape,
                    fmt::format("stage {} takes {} as one and stage {} takes {}, and "
                                "{}, which crosses between them, {}: hand on values whose "
                                "dimension 0 counts samples, or give both stages one size",
                                input.from.value,
                                count_text(size_of(input.from), "microbatch"),
                                consumer.id.value,
                                size_of(consumer.id),
                                value_name(one, input.value),
                                why));
      }
    }
  }
}

}  // namespace

Program resize(const Program& program, const std::vector<int>& sizes) {
  const CompiledProgram& model = program.compiled();
  if (model.stage_graph.microbatch_sizes() == sizes) {
    return program;
  }
  if (program.shape_captures() == nullptr || !model.stage_graph.microbatch_sizes().empty()) {
    throw Error(Errc::UsageArgument,
                "stages take microbatches of other sizes only in a program that sc::compile made "
                "of a module: each is captured on microbatches of its size");
  }
  auto resized = std::make_shared<CompiledProgram>(model);
  resized->stage_graph.set_microbatch_sizes(sizes);
  const auto new_names = static_cast<std::int32_t>(model.graph.values.size());
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    if (const auto captured = program.shape_captures()->of_size(sizes[s])) {
      const StageProgram& stage = captured->stages[s];
      const StageProgram& like = model.partition.stages[s];
      resized->partition.stages[s] = renamed(stage, Renaming(stage, like, new_names));
    }
  }
  check_crossing(*resized, resized->partition.stages);
  return Program(std::move(resized));
}

}  // namespace stagecraft
