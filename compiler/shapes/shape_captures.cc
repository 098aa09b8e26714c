#include "stagecraft/compiler/shapes/shape_captures.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/cat.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/compiler/capture/capture.h"
#include "stagecraft/compiler/cut/cut_like.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/module/registered.h"
#include "stagecraft/compiler/program/gradient_flow.h"
#include "stagecraft/compiler/program/recompute_stages.h"
#include "stagecraft/compiler/program/replay_check.h"
#include "stagecraft/compiler/program/same_module.h"
#include "stagecraft/compiler/shapes/evaluation_stages.h"
#include "stagecraft/compiler/stage/probe.h"

namespace stagecraft {
namespace {

std::string shapes_text(const std::vector<BatchSlice>& slices) {
  std::vector<std::string> all;
  for (const BatchSlice& slice : slices) {
    const std::string order =
        slice.order.empty() ? ""
                            : fmt::format(" (in memory as ({}))", fmt::join(slice.order, ", "));
    all.push_back(fmt::format("[{}]{}", fmt::join(slice.sizes, ", "), order));
  }
  return fmt::format("{}", fmt::join(all, " "));
}

std::string shape_text(const std::vector<BatchSlice>& inputs,
                       const std::vector<BatchSlice>& labels) {
  return labels.empty() ? shapes_text(inputs)
                        : shapes_text(inputs) + " with labels " + shapes_text(labels);
}

/// Digest computes an FNV-1a hash.
class Digest {
 public:
  void add(std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (word & 0xFFU)) * 0x100000001b3ULL;
      word >>= 8U;
    }
  }
  void add(const std::vector<BatchSlice>& slices) {
    add(slices.size());
    for (const BatchSlice& slice : slices) {
      add(slice.sizes.size());
      for (const std::int64_t size : slice.sizes) {
        add(static_cast<std::uint64_t>(size));
      }
    }
  }
  [[nodiscard]] std::uint64_t value() const { return hash_ == 0 ? 1 : hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

bool same_sizes(const std::vector<BatchSlice>& some, const std::vector<BatchSlice>& others) {
  return std::ranges::equal(some, others, {}, &BatchSlice::sizes, &BatchSlice::sizes);
}

std::uint64_t random_of(const std::vector<BatchSlice>& inputs,
                        const std::vector<BatchSlice>& labels) {
  Digest digest;
  digest.add(inputs);
  digest.add(labels);
  return digest.value();
}

/// Puts the inputs of each stage into the order of the program's, since capture may have met them
/// in another one. A value that another stage makes is identified by its place among that stage's
/// outputs.
void order_inputs(const std::vector<StageProgram>& model, std::vector<StageProgram>& stages) {
  const auto place_of = [](const std::vector<StageProgram>& all, const StageInput& input) {
    if (input.source != StageInput::Source::Stage) {
      return static_cast<std::ptrdiff_t>(input.position);
    }
    const std::vector<StageOutput>& made = all[input.from.index()].outputs;
    return std::ranges::find(made, input.value, &StageOutput::value) - made.begin();
  };
  for (std::size_t s = 0; s < stages.size(); ++s) {
    std::vector<StageInput> ordered;
    for (const StageInput& wanted : model[s].inputs) {
      for (const StageInput& input : stages[s].inputs) {
        if (input.source == wanted.source && input.from == wanted.from &&
            place_of(stages, input) == place_of(model, wanted)) {
          ordered.push_back(input);
        }
      }
    }
    if (ordered.size() == stages[s].inputs.size()) {  // otherwise misfit() reports it
      stages[s].inputs = std::move(ordered);
    }
  }
}

/// CaptureScope sets the state in which a shape is captured, independent of the state that the
/// caller of step() has set.
class CaptureScope {
 public:
  explicit CaptureScope(const CompiledProgram& model) { AutocastGuard::set(model.autocast); }

 private:
  const SingleThreaded alone_;
  const c10::InferenceMode no_inference_{false};
  const AutocastGuard before_;
};

/// Joins the first `size` microbatches into one; returns its slices and its tensors.
std::pair<std::vector<BatchSlice>, Tensors> joined(std::vector<BatchSlice> slices,
                                                   const std::vector<Tensors>& microbatches,
                                                   int size) {
  Tensors all;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    Tensors rows;
    for (int m = 0; m < size; ++m) {
      rows.push_back(microbatches[static_cast<std::size_t>(m)][i]);
    }
    all.push_back(slices[i].replicated ? rows.front() : at::cat(rows, 0));
    slices[i].sizes = all.back().sizes().vec();
    slices[i].order = memory_order_of(all.back());
  }
  return {std::move(slices), std::move(all)};
}

[[noreturn]] void refuse_misfit(const std::string& what) {
  throw Error(Errc::CompileShape,
              fmt::format("captured for this shape, the module does not fit the program: {}; the "
                          "parameters of the stages and the values between them must not depend on "
                          "the shape: pad the batch, or compile a program for it",
                          what));
}

/// Divides a graph of another shape into the stages of the model.
Partition stages_like(const CompiledProgram& model, const Graph& graph) {
  const LikeCut cut = cut_like(graph, model);
  if (!cut.misfit.empty()) {
    refuse_misfit(cut.misfit);
  }
  return partition_keeping(graph, cut.assignment, model.keep);
}

void check_count(const std::vector<StageProgram>& model, const std::vector<StageProgram>& stages) {
  if (model.size() != stages.size()) {
    refuse_misfit(fmt::format("it has {} stages instead of {}", stages.size(), model.size()));
  }
}

/// Keeps VT-1. Requires: check_count.
void check_fit(const std::vector<StageProgram>& model, const std::vector<StageProgram>& stages) {
  for (std::size_t s = 0; s < model.size(); ++s) {
    if (const std::string found = misfit(model[s], stages[s]); !found.empty()) {
      refuse_misfit(fmt::format("stage {} \"{}\" {}", s, model[s].name, found));
    }
  }
}

}  // namespace

ShapeCaptures::ShapeCaptures(std::shared_ptr<const CompiledProgram> model,
                             ModuleSource source,
                             int most,
                             std::shared_ptr<const Example> example)
    : model_(std::move(model)),
      source_(std::move(source)),
      most_(most),
      example_(std::move(example)) {}

std::shared_ptr<const OtherShape> ShapeCaptures::of(const std::vector<BatchSlice>& inputs,
                                                    const std::vector<BatchSlice>& labels,
                                                    const Tensors& input_part,
                                                    const Tensors& label_part) {
  if (inputs == model_->inputs && labels == model_->labels) {
    return nullptr;
  }
  const std::scoped_lock lock(mutex_);
  for (const auto& known : captured_) {
    if (known->inputs == inputs && known->labels == labels) {
      return known;
    }
  }
  const auto refuse = [&](const std::string& why) {
    throw Error(Errc::CompileShape,
                fmt::format("this batch has microbatches of {}, the program was compiled for {}, "
                            "and {}",
                            shape_text(inputs, labels),
                            shape_text(model_->inputs, model_->labels),
                            why));
  };
  const bool as_compiled = same_sizes(inputs, model_->inputs) && same_sizes(labels, model_->labels);
  if (!source_.one_shape.empty() && !as_compiled) {
    refuse(source_.one_shape);
  }
  if (std::ssize(captured_) + 1 >= most_) {
    refuse(
        fmt::format("it has {} shapes by now, as many as CompileOptions::shapes allows: pad "
                    "batches to fewer shapes and give them one memory format, or allow more",
                    captured_.size() + 1));
  }
  auto made = std::make_shared<OtherShape>();
  made->number = static_cast<int>(captured_.size()) + 1;
  made->random = as_compiled ? 0 : random_of(inputs, labels);
  made->inputs = inputs;
  made->labels = labels;
  try {
    made->stages = captured(input_part, label_part);
  } catch (const Error& error) {
    const bool by_shape =
        error.code() == Errc::CompileCapture || error.code() == Errc::CompilePartition;
    throw Error(by_shape ? Errc::CompileShape : error.code(),
                fmt::format("microbatches of {}, the program was compiled for {}: {}",
                            shape_text(inputs, labels),
                            shape_text(model_->inputs, model_->labels),
                            error.message()))
        .with(error.context());
  }
  log(Level::Info,
      "captured for another shape",
      {{"shape", shape_text(inputs, labels)}, {"shapes", captured_.size() + 2}});
  captured_.push_back(made);
  return made;
}

std::shared_ptr<const OtherShape> ShapeCaptures::of_size(int size) {
  if (size == 1) {
    return nullptr;
  }
  SC_CHECK(example_ != nullptr && size <= model_->microbatches,
           "the example batch has as many microbatches as a stage joins");
  const auto [inputs, input_part] = joined(model_->inputs, example_->inputs, size);
  const auto [labels, label_part] = joined(model_->labels, example_->labels, size);
  return of(inputs, labels, input_part, label_part);
}

std::shared_ptr<ShapeCaptures> ShapeCaptures::of_program(
    std::shared_ptr<const CompiledProgram> model) const {
  return std::make_shared<ShapeCaptures>(std::move(model), source_, most_, example_);
}

int ShapeCaptures::count() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<int>(captured_.size()) + 1;
}

Graph ShapeCaptures::graph_of(const Tensors& inputs, const Tensors& labels) const {
  if (!source_.one_shape.empty()) {
    throw Error(Errc::CompileShape,
                fmt::format("the program was compiled for microbatches of {}, and {}",
                            shape_text(model_->inputs, model_->labels),
                            source_.one_shape));
  }
  const std::scoped_lock lock(mutex_);
  const CaptureScope scope(*model_);
  try {
    return graph_now(inputs, labels);
  } catch (const Error& error) {
    throw Error(error.code() == Errc::CompileCapture ? Errc::CompileShape : error.code(),
                fmt::format("the program was compiled for microbatches of {}: {}",
                            shape_text(model_->inputs, model_->labels),
                            error.message()))
        .with(error.context());
  }
}

Graph ShapeCaptures::graph_now(const Tensors& inputs, const Tensors& labels) const {
  Workload workload = source_.workload();
  workload.parameters = internal::without_aliases(workload.parameters);
  workload.buffers = internal::without_aliases(workload.buffers);
  require_same_module(*model_, workload);
  const InModes as_compiled(workload, model_->modes);
  Graph graph = capture(workload, inputs, labels);
  check_against_eager(workload, graph, inputs, labels);
  return graph;
}

std::vector<StageProgram> ShapeCaptures::captured(const Tensors& inputs,
                                                  const Tensors& labels) const {
  const CaptureScope scope(*model_);
  Graph graph = graph_now(inputs, labels);
  Partition made = model_->evaluates == nullptr ? stages_like(*model_, graph)
                                                : evaluation_stages(graph, *model_->evaluates);
  check_count(model_->partition.stages, made.stages);
  if (model_->evaluates == nullptr) {
    std::vector<StageRun> runs = run_stages(graph, made, inputs, labels);
    find_gradient_flow(made, runs);
    recompute_stages(graph, model_->stage_graph, model_->recompute, made, std::move(runs));
    for (std::size_t s = 0; s < model_->chunk_borders.size(); ++s) {
      cut_at(made.stages[s], model_->chunk_borders[s]);
    }
  }
  order_inputs(model_->partition.stages, made.stages);
  check_fit(model_->partition.stages, made.stages);
  return std::move(made.stages);
}

}  // namespace stagecraft
