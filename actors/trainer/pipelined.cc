#include "stagecraft/actors/trainer/pipelined.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mul.h>
#include <c10/util/ScopeExit.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/builders/schedule_for.h"

namespace stagecraft {
namespace {

namespace autograd = torch::autograd;

using Tensors = std::vector<at::Tensor>;

Execution execution_of(const Program& program, const PipelinedOptions& options) {
  Execution execution = make_execution(
      program, schedule_for(options.schedule, program.stage_graph(), program.microbatches()));
  if (options.trainer.loss_scaling) {
    throw Error(Errc::UsageArgument,
                "a pipelined module does not scale the caller's loss: scale it before its "
                "backward(), or leave loss_scaling out");
  }
  bool backwards = false;
  for (const Cell& cell : execution.schedule.rows().back()) {
    for (const Task& task : cell.tasks()) {
      if (backwards && task.kind == CellKind::Forward) {
        throw Error(Errc::UsageArgument,
                    fmt::format("the schedule \"{}\" runs a backward before all forwards, and the "
                                "caller computes its loss between them: use \"gpipe\", or a "
                                "Trainer whose loss calls sc::on_driver",
                                options.schedule));
      }
      backwards = task.kind != CellKind::Forward;
    }
  }
  return execution;
}

/// Returns the samples of a batch: those of its first tensor that is split.
std::int64_t samples_in(const Batch& batch) {
  for (const BatchTensor& one : batch) {
    if (!one.replicated && one.tensor.dim() > 0) {
      return one.tensor.size(0);
    }
  }
  return 0;
}

/// The results of the microbatches are joined in dimension 0.
void check_results(const Program& program, const PipelinedOptions& options) {
  const Graph& graph = program.compiled().graph;
  const std::int64_t rows = samples_in(options.inputs) / program.microbatches();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const Value& result = graph.at(graph.outputs[i]);
    if (result.sizes.empty() || result.sizes.front() != rows) {
      throw Error(Errc::UsageArgument,
                  fmt::format("result {} of the pipelined module has the shape {} for {} samples; "
                              "return results with a row for each sample in dimension 0",
                              i,
                              c10::str(at::IntArrayRef(result.sizes)),
                              rows));
    }
  }
}

}  // namespace

struct Pipelined::Impl {
  const std::shared_ptr<OutputExchange> between;
  const int microbatches;
  const std::chrono::milliseconds patience;
  Trainer trainer;
  StepFuture step;
  StepResult last;
  std::int64_t run = 0;
  bool waits = false;  ///< for the backward of a result

  Impl(const Cluster& cluster,
       const Program& program,
       std::shared_ptr<OutputExchange> b,
       const PipelinedOptions& options)
      : between(std::move(b)),
        microbatches(program.microbatches()),
        patience(options.trainer.step_deadline),
        trainer(cluster, execution_of(program, options), options.optimizer, options.trainer) {}

  /// Errors: UsageArgument while a result waits: its step holds the ranks.
  void require_idle() const {
    if (waits && !step.ready()) {
      throw Error(
          Errc::UsageArgument,
          "the last result of this pipelined module waits for its backward, and holds the ranks "
          "until then: call it, or drop the result, before anything else");
    }
  }

  /// Ends the run, if its result was dropped.
  void drop(std::int64_t dropped) {
    between->end(dropped);
    waits = waits && dropped != run;
  }

  /// Gives the gradients of a run's whole results, and waits for the update. `rows`: of each
  /// result, by microbatch.
  void finish(std::int64_t of_run,
              const StepFuture& of_step,
              const Tensors& gradients,
              const std::vector<std::vector<std::int64_t>>& rows) {
    if (of_run != run) {
      (void)of_step.get();  // tells why the step is over
      throw Error(Errc::UsageArgument,
                  "the step of this result of the pipelined module is over: call its backward() "
                  "before the next call");
    }
    waits = false;
    // Ranks divide the sum over the microbatches by their number.
    std::vector<Tensors> parts(static_cast<std::size_t>(microbatches), Tensors(gradients.size()));
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i].defined()) {
        const Tensors split =
            at::mul(gradients[i].detach(), microbatches).split_with_sizes(rows[i]);
        for (std::size_t m = 0; m < parts.size(); ++m) {
          parts[m][i] = split[m].contiguous();
        }
      }
    }
    between->give(std::move(parts));
    last = step.get();
  }
};

namespace {

/// PipelinedNode is the module in the caller's graph.
struct PipelinedNode : autograd::Node {
  std::function<void(const Tensors&)> finish;  ///< empty once it has run
  std::function<void()> drop;

  PipelinedNode() = default;
  PipelinedNode(const PipelinedNode&) = delete;
  PipelinedNode& operator=(const PipelinedNode&) = delete;
  ~PipelinedNode() override {
    if (finish) {
      drop();
    }
  }

  autograd::variable_list apply(autograd::variable_list&& gradients) override {
    if (!finish) {
      throw Error(Errc::UsageArgument,
                  "the backward of the pipelined module is called a second time: its step is over");
    }
    std::exchange(finish, {})(gradients);
    return {};
  }
  [[nodiscard]] std::string name() const override { return "the pipelined module"; }
};

}  // namespace

Pipelined::Pipelined(const Cluster& cluster,
                     const Program& program,
                     std::shared_ptr<OutputExchange> between,
                     const PipelinedOptions& options)
    : impl_((check_results(program, options),
             std::make_shared<Impl>(cluster, program, std::move(between), options))) {}

Pipelined::Pipelined(Pipelined&&) noexcept = default;
Pipelined& Pipelined::operator=(Pipelined&&) noexcept = default;

Pipelined::~Pipelined() {
  if (impl_ != nullptr) {
    impl_->drop(impl_->run);
  }
}

Pipelined::Impl& Pipelined::impl() const {
  if (impl_ == nullptr) {
    throw Error(Errc::UsageArgument,
                "this pipelined module was moved from: use the one it was moved to");
  }
  return *impl_;
}

Tensors Pipelined::all(const Batch& inputs) {
  Impl& impl = this->impl();
  impl.require_idle();
  if (!at::GradMode::is_enabled()) {
    return impl.trainer.predict(inputs);
  }
  for (const BatchTensor& input : inputs) {
    if (input.tensor.requires_grad()) {
      throw Error(Errc::UsageArgument,
                  "a pipelined module gives no gradient to its inputs, and this input requires "
                  "one: detach() it, or make what computes it part of the module");
    }
  }
  if (const std::int64_t samples = samples_in(inputs); samples % impl.microbatches != 0) {
    throw Error(Errc::UsageArgument,
                fmt::format("the batch has {} samples for {} microbatches: pass a multiple",
                            samples,
                            impl.microbatches));
  }
  const std::int64_t run = impl.run = impl.between->begin(impl.microbatches, impl.patience);
  auto end = c10::make_scope_exit([&] { impl.between->end(run); });
  impl.step = impl.trainer.step(inputs, {OutputExchange::labels(run, impl.microbatches)});
  impl.step.future().on_ready([between = impl.between, run] { between->end(run); });
  const std::vector<Tensors> parts = impl.between->outputs();
  if (parts.empty()) {
    impl.last = impl.step.get();  // throws: a step that succeeds has outputs
    throw Error(Errc::Internal, "the pipelined module's step ended without outputs");
  }
  Tensors results;
  std::vector<std::vector<std::int64_t>> rows(parts.front().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    Tensors of_all;
    for (const Tensors& part : parts) {
      of_all.push_back(part[i]);
      rows[i].push_back(part[i].size(0));
    }
    results.push_back(at::cat(of_all));
  }
  impl.waits = true;
  const std::shared_ptr<PipelinedNode> node(new PipelinedNode, autograd::deleteNode);
  node->finish = [of = impl_, run, step = impl.step, rows](const Tensors& gradients) {
    of->finish(run, step, gradients, rows);
  };
  node->drop = [of = impl_, run] { of->drop(run); };
  for (at::Tensor& result : results) {
    if (result.is_floating_point()) {
      autograd::create_gradient_edge(result, node);
    } else {
      node->add_input_metadata(autograd::Node::undefined_input());
    }
  }
  end.release();
  return results;
}

at::Tensor Pipelined::only(Tensors results) {
  if (results.size() != 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("the pipelined module has {} results: call all(), which returns them "
                            "in a list",
                            results.size()));
  }
  return std::move(results.front());
}

Trainer& Pipelined::trainer() {
  impl().require_idle();
  return impl().trainer;
}

const StepResult& Pipelined::last_step() const {
  return impl().last;
}

}  // namespace stagecraft
