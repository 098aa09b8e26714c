#include "stagecraft/compiler/wire/program_wire.h"

#include <variant>

#include <fmt/format.h>

#include "stagecraft/compiler/wire/literal.h"

namespace stagecraft::wire {

void ProgramWriter::leaf(const c10::IValue& literal) {
  put_literal(*this, literal);
}

void ProgramWriter::leaf(const at::Tensor& constant) {
  natural(tensors_.number_of(constant));
}

void ProgramWriter::leaf(const Attachment& attachment) {
  text(name_of(attachment));  // PW-1
}

void ProgramReader::leaf(c10::IValue& literal) {
  literal = get_literal(*this);
}

void ProgramReader::leaf(at::Tensor& constant) {
  const std::uint64_t number = natural();
  if (number >= tensors_.size()) {
    refuse(fmt::format("it refers to tensor {}, but comes with {}", number, tensors_.size()));
  }
  constant = tensors_[number];
}

void ProgramReader::leaf(Attachment&) {
  refuse(fmt::format("it has {}, which exists in one process alone", text()));
}

std::vector<std::string> obstacles(const StageProgram& stage) {
  std::vector<std::string> all;
  for (const Attachment& attachment : stage.attachments) {
    all.push_back(fmt::format("stage \"{}\" has {}", stage.name, name_of(attachment)));
  }
  for (const Chunk& chunk : stage.chunks) {
    for (const Node& node : chunk.nodes) {
      for (const Operand& operand : node.operands) {
        const auto* literal = std::get_if<c10::IValue>(&operand);
        if (literal != nullptr && !can_travel(*literal)) {
          all.push_back(fmt::format("{} in stage \"{}\" has a literal of kind {}",
                                    operator_name(node),
                                    stage.name,
                                    literal->tagKind()));
        }
      }
    }
  }
  for (const StageConstant& constant : stage.constants) {
    if (const std::string why = obstacle(constant.tensor); !why.empty()) {
      all.push_back(fmt::format(
          "the constant %{} of stage \"{}\": {}", constant.value.value, stage.name, why));
    }
  }
  return all;
}

TravelSize travel_size(const StageProgram& given) {
  StageProgram stage = given;
  std::erase_if(stage.constants,
                [](const StageConstant& c) { return !obstacle(c.tensor).empty(); });
  for (Chunk& chunk : stage.chunks) {
    for (Node& node : chunk.nodes) {
      std::erase_if(node.operands, [](const Operand& operand) {
        const auto* literal = std::get_if<c10::IValue>(&operand);
        return literal != nullptr && !can_travel(*literal);
      });
    }
  }
  TensorTable tensors;
  ProgramWriter out(tensors);
  put(out, stage);
  TravelSize size{.program = out.take().size()};
  for (const at::Tensor& span : tensors.spans()) {
    size.constants += static_cast<std::int64_t>(span.nbytes());
  }
  return size;
}

}  // namespace stagecraft::wire
