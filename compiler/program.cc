#include "stagecraft/compiler/program.h"

#include <ATen/core/Tensor.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/StringUtil.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compiled_program.h"

namespace stagecraft {
namespace {

std::int64_t parameter_bytes(const Graph& graph, const StageProgram& stage) {
  std::int64_t bytes = 0;
  for (const int p : stage.parameters) {
    bytes +=
        static_cast<std::int64_t>(graph.parameters[static_cast<std::size_t>(p)].tensor.nbytes());
  }
  return bytes;
}

std::string explain_stage(const CompiledProgram& program, const StageProgram& stage) {
  const Graph& graph = program.graph;
  std::string text = fmt::format(
      "stage {} \"{}\": {} operators, {} parameters ({}), keeps {} per microbatch{}{}\n",
      stage.id.value,
      stage.name,
      stage.nodes.size(),
      stage.parameters.size(),
      bytes_text(static_cast<double>(parameter_bytes(graph, stage))),
      bytes_text(static_cast<double>(stage.saved_bytes)),
      program.stage_graph.has_backward(stage.id) ? "" : ", frozen: no backward",
      stage.loss == kNoValue ? "" : ", computes the loss");
  std::vector<std::string> reads;
  for (const StageInput& input : stage.inputs) {
    if (input.source != StageInput::Source::Stage) {
      reads.push_back(value_name(graph, input.value));
    }
  }
  if (!reads.empty()) {
    text += fmt::format("  reads {}\n", fmt::join(reads, ", "));
  }
  for (const StageOutput& output : stage.outputs) {
    for (std::size_t c = 0; c < output.consumers.size(); ++c) {
      text += fmt::format("  {} -> stage {} \"{}\": {}[{}], {}{}\n",
                          value_name(graph, output.value),
                          output.consumers[c].value,
                          program.partition.stages[output.consumers[c].index()].name,
                          at::toString(graph.at(output.value).dtype),
                          fmt::join(graph.at(output.value).sizes, ", "),
                          bytes_text(static_cast<double>(bytes_of(graph.at(output.value)))),
                          output.gradient_from[c] ? ", gradient back" : "");
    }
  }
  return text;
}

}  // namespace

Program::Program(std::shared_ptr<const CompiledProgram> compiled) : compiled_(std::move(compiled)) {
  if (compiled_ == nullptr) {
    throw Error(Errc::UsageArgument, "a Program of nothing was made; get one from sc::compile");
  }
}

const StageGraph& Program::stage_graph() const {
  return compiled_->stage_graph;
}

int Program::microbatches() const {
  return compiled_->microbatches;
}

std::vector<std::string> Program::parameter_names() const {
  std::vector<std::string> names;
  for (const NamedTensor& p : compiled_->graph.parameters) {
    names.push_back(p.name);
  }
  return names;
}

std::string Program::explain() const {
  std::string text;
  for (const StageProgram& stage : compiled_->partition.stages) {
    text += explain_stage(*compiled_, stage);
  }
  for (const Attachment& attachment : compiled_->graph.attachments) {
    text += fmt::format("in this process only: {}\n", name_of(attachment));
  }
  return text;
}

std::string Program::graph_text() const {
  return to_string(compiled_->graph);
}

std::int64_t bytes_of(const Value& value) {
  return c10::multiply_integers(value.sizes) *
         static_cast<std::int64_t>(at::elementSize(value.dtype));
}

std::string why_unusable(const at::Tensor& tensor) {
  if (!tensor.defined()) {
    return "is undefined";
  }
  if (tensor.is_nested() || tensor.layout() != at::kStrided) {
    return fmt::format("is {}",
                       tensor.is_nested() ? "nested" : c10::str("of layout ", tensor.layout()));
  }
  if (tensor.is_quantized()) {
    return fmt::format("is quantized ({})", at::toString(tensor.scalar_type()));
  }
  if (!tensor.device().is_cpu()) {
    return fmt::format("is on the device {}", tensor.device().str());
  }
  return "";
}

void check_batch_tensor(const at::Tensor& tensor, std::string_view what, std::size_t position) {
  if (const std::string fault = why_unusable(tensor); !fault.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} tensor {} {}; a batch is of dense tensors on the CPU: convert it "
                            "(to_dense, dequantize, "
                            "cpu) before",
                            what,
                            position,
                            fault));
  }
  if (tensor.requires_grad()) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("{} tensor {} requires a gradient, and a batch gets none; pass tensor.detach()",
                    what,
                    position));
  }
}

std::vector<std::vector<at::Tensor>> split_batch(const Batch& batch,
                                                 const std::vector<BatchSlice>& expected,
                                                 int microbatches,
                                                 std::string_view what) {
  if (batch.size() != expected.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the program was compiled with {} {} tensors, this batch has {}; pass "
                            "as many, in the same order",
                            expected.size(),
                            what,
                            batch.size()));
  }
  // Copies made in inference mode could not be differentiated through.
  const c10::InferenceMode no_inference(false);
  std::vector<std::vector<at::Tensor>> parts(static_cast<std::size_t>(microbatches));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const BatchSlice& slice = expected[i];
    const at::Tensor& tensor = batch[i].tensor;
    check_batch_tensor(tensor, what, i);
    std::vector<std::int64_t> whole = slice.sizes;
    if (!slice.replicated) {
      whole[0] *= microbatches;
    }
    if (tensor.sizes() != at::IntArrayRef(whole) || tensor.scalar_type() != slice.dtype ||
        batch[i].replicated != slice.replicated) {
      throw Error(Errc::CompileShape,
                  fmt::format("{} tensor {} was compiled as {} of shape [{}]{} ({} microbatches), "
                              "this batch has {} of shape "
                              "[{}]{}; pass the same shape and dtype, or compile again",
                              what,
                              i,
                              at::toString(slice.dtype),
                              fmt::join(whole, ", "),
                              slice.replicated ? " (replicated)" : "",
                              microbatches,
                              at::toString(tensor.scalar_type()),
                              fmt::join(tensor.sizes(), ", "),
                              batch[i].replicated ? " (replicated)" : ""));
    }
    const auto copy = [](const at::Tensor& t) { return t.clone(at::MemoryFormat::Contiguous); };
    const at::Tensor shared = slice.replicated ? copy(tensor) : at::Tensor();
    const std::int64_t rows = slice.replicated ? 0 : slice.sizes[0];
    for (std::size_t m = 0; m < parts.size(); ++m) {
      parts[m].push_back(slice.replicated
                             ? shared
                             : copy(tensor.narrow(0, static_cast<std::int64_t>(m) * rows, rows)));
    }
  }
  return parts;
}

}  // namespace stagecraft
