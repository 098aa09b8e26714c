#include "stagecraft/compiler/stage/division.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/native/count.h"

namespace stagecraft {
namespace {

class Division {
 public:
  Division(const StageProgram& stage, std::int32_t number, std::int64_t ranks)
      : stage_(stage),
        number_(number),
        chunk_(stage.chunks[static_cast<std::size_t>(number)]),
        ranks_(ranks) {}

  [[nodiscard]] std::string misfit() const {
    if (!chunk_.divided) {
      return "is no region: name one in the filter, as in {EP:*}";
    }
    for (const auto check :
         {&Division::of_operators, &Division::of_parameters, &Division::of_borders}) {
      if (std::string why = (this->*check)(); !why.empty()) {
        return why;
      }
    }
    return {};
  }

 private:
  [[nodiscard]] std::string of_operators() const {
    for (const Node& node : chunk_.nodes) {
      if (node.name == kCountOperator) {
        return "calls sc::count, and each rank would count its own experts alone: put that outside "
               "of the region";
      }
      if (node.random_index >= 0) {
        return fmt::format("draws random numbers ({}): put that outside of the region",
                           operator_name(node));
      }
      if (std::ranges::any_of(node.writes, [&](ValueId written) {
            return stage_.at(written).kind == ValueKind::Buffer;
          })) {
        return fmt::format("changes a buffer ({}): put that outside of the region",
                           operator_name(node));
      }
      if (stage_.loss != kNoValue &&
          std::ranges::find(node.results, stage_.loss) != node.results.end()) {
        return "computes the loss: end the region before it";
      }
    }
    return {};
  }

  [[nodiscard]] std::string of_parameters() const {
    if (const std::string name = read_beyond(stage_, number_, number_ + 1); !name.empty()) {
      return fmt::format("shares the parameter {} with operators outside of it", name);
    }
    const std::vector<int> completing = completing_chunks(stage_);
    std::size_t trained = 0;
    for (const StageParameter& parameter : stage_.parameters) {
      const int completed = parameter.trained ? completing[trained++] : -1;
      if (!uses(chunk_, parameter.value) && completed != number_) {
        continue;
      }
      if (stage_.at(parameter.value).hooks != kNoAttachment) {
        return fmt::format("has the parameter {}, whose hooks would see the gradient of a part",
                           parameter.name);
      }
      if (!parameter.trained) {
        return fmt::format(
            "has the parameter {}, which does not train: freeze it by a group of "
            "parameters instead",
            parameter.name);
      }
      if (completed != number_) {
        return fmt::format("shares the parameter {} with operators before it", parameter.name);
      }
      if (std::string why = of_sizes(stage_.at(parameter.value), parameter.name, 1); !why.empty()) {
        return why;
      }
    }
    return {};
  }

  [[nodiscard]] std::string of_sizes(const Value& value,
                                     const std::string& name,
                                     std::size_t least) const {
    return value.sizes.size() >= least && value.sizes[0] % ranks_ == 0
               ? std::string()
               : fmt::format(
                     "has {} of sizes [{}]: expected the experts in dimension 0, a multiple "
                     "of the {} ranks{}",
                     name,
                     fmt::join(value.sizes, ", "),
                     ranks_,
                     least > 1 ? ", and their samples in dimension 1" : "");
  }

  /// Only values of floating point cross, and only from and to chunks of the stage.
  [[nodiscard]] std::string of_borders() const {
    if (number_ == 0 || number_ + 1 == static_cast<std::int32_t>(stage_.chunks.size()) ||
        chunk_.inputs.empty() || chunk_.outputs.empty()) {
      return "is not in the midst of its stage: begin the region behind the first operator, and "
             "end it before the last one";
    }
    for (const ValueId input : chunk_.inputs) {
      const auto makes = [&](const Chunk& chunk) {
        return std::ranges::find(chunk.outputs, input) != chunk.outputs.end();
      };
      if (std::none_of(stage_.chunks.begin(), stage_.chunks.begin() + number_, makes)) {
        return fmt::format(
            "reads an input of its stage, {}: begin the region behind the first "
            "operator that uses it",
            value_name(stage_.at(input), input));
      }
    }
    for (const ValueId output : chunk_.outputs) {
      if (std::ranges::find(stage_.outputs, output, &StageOutput::value) != stage_.outputs.end()) {
        return fmt::format(
            "makes an output of its stage, {}: end the region before the last "
            "operator",
            value_name(stage_.at(output), output));
      }
    }
    for (const auto* side : {&chunk_.inputs, &chunk_.outputs}) {
      for (const ValueId value : *side) {
        const Value& facts = stage_.at(value);
        if (std::string why = of_sizes(facts, value_name(facts, value), 2); !why.empty()) {
          return why;
        }
        if (!at::isFloatingType(facts.dtype)) {
          return fmt::format("has {} at its border: only values of floating point are exchanged",
                             at::toString(facts.dtype));
        }
      }
    }
    return {};
  }

  const StageProgram& stage_;
  const std::int32_t number_;
  const Chunk& chunk_;
  const std::int64_t ranks_;
};

}  // namespace

std::string misfit_of_division(const StageProgram& stage, std::int32_t chunk, std::int64_t ranks) {
  return Division(stage, chunk, ranks).misfit();
}

}  // namespace stagecraft
