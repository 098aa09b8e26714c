#include "stagecraft/actors/trainer/output_exchange.h"

#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

namespace autograd = torch::autograd;

/// GivenGradients has the gradients of a microbatch from the caller, in its own backward.
struct GivenGradients : autograd::Node {
  std::shared_ptr<OutputExchange> from;
  OutputExchange::Place place;
  OutputExchange::Tensors outputs;  ///< while the module is captured; empty in a run

  autograd::variable_list apply(autograd::variable_list&&) override {
    if (outputs.empty()) {
      return from->gradients_of(place);
    }
    autograd::variable_list zeros;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      zeros.push_back(next_edge(i).is_valid() ? at::zeros_like(outputs[i]) : at::Tensor());
    }
    return zeros;
  }
  [[nodiscard]] std::string name() const override { return "the caller's gradients"; }
};

}  // namespace

at::Tensor OutputExchange::labels(std::int64_t run, int microbatches) {
  at::Tensor labels = at::empty({microbatches, 2}, at::kLong);
  auto* row = labels.mutable_data_ptr<std::int64_t>();
  for (int m = 0; m < microbatches; ++m) {
    *row++ = run;
    *row++ = m;
  }
  return labels;
}

OutputExchange::Place OutputExchange::place_of(const at::Tensor& label) {
  const at::Tensor here = label.contiguous();
  const auto* row = here.const_data_ptr<std::int64_t>();
  return {.run = row[0], .microbatch = static_cast<std::size_t>(row[1])};
}

std::int64_t OutputExchange::begin(int microbatches, std::chrono::milliseconds patience) {
  const std::scoped_lock lock(mutex_);
  caller_ = std::this_thread::get_id();
  running_ = true;
  deadline_ = clock_->now() + patience;
  arrived_ = 0;
  outputs_.assign(static_cast<std::size_t>(microbatches), {});
  gradients_.clear();
  return ++run_;
}

void OutputExchange::end(std::int64_t run) {
  {
    const std::scoped_lock lock(mutex_);
    running_ = running_ && run != run_;
  }
  changed_.notify_all();
}

bool OutputExchange::put(Place place, Tensors outputs) {
  const std::scoped_lock lock(mutex_);
  if (!running_ || place.run != run_ || caller_ == std::this_thread::get_id()) {
    return false;
  }
  outputs_[place.microbatch] = std::move(outputs);
  if (++arrived_ == outputs_.size()) {
    changed_.notify_all();
  }
  return true;
}

std::vector<OutputExchange::Tensors> OutputExchange::outputs() {
  std::unique_lock lock(mutex_);
  clock_->wait(changed_, lock, [this] { return !running_ || arrived_ == outputs_.size(); });
  return running_ ? std::exchange(outputs_, {}) : std::vector<Tensors>();
}

void OutputExchange::give(std::vector<Tensors> gradients) {
  {
    const std::scoped_lock lock(mutex_);
    gradients_ = std::move(gradients);
  }
  changed_.notify_all();
}

OutputExchange::Tensors OutputExchange::gradients_of(Place place) {
  std::unique_lock lock(mutex_);
  const bool told = clock_->wait_until(changed_, lock, deadline_, [&] {
    return !running_ || place.run != run_ || !gradients_.empty();
  });
  if (!told) {
    throw Error(Errc::ClusterTimeout,
                "the backward of the pipelined module's result did not come within the deadline of "
                "its step: call it earlier, or set a longer step_deadline");
  }
  if (place.run != run_ || gradients_.empty()) {
    throw Error(Errc::UsageArgument,
                "the result of the pipelined module was dropped without a backward, so its step "
                "has no gradients");
  }
  return std::move(gradients_[place.microbatch]);
}

at::Tensor loss_of_caller(const std::shared_ptr<OutputExchange>& to,
                          const at::Tensor& label,
                          const OutputExchange::Tensors& outputs) {
  OutputExchange::Tensors plain;
  for (const at::Tensor& output : outputs) {
    plain.push_back(output.detach());
  }
  const std::shared_ptr<GivenGradients> node(new GivenGradients, autograd::deleteNode);
  node->set_next_edges(autograd::collect_next_edges(outputs));
  node->from = to;
  node->place = OutputExchange::place_of(label);
  if (!to->put(node->place, plain)) {
    node->outputs = std::move(plain);
  }
  at::Tensor loss = at::zeros({});
  autograd::create_gradient_edge(loss, node);
  return loss;
}

}  // namespace stagecraft
