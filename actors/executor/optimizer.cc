#include "stagecraft/actors/executor/optimizer.h"

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <numbers>

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The tensors of some parameters, regrouped the way the fused kernels take them.
struct Columns {
  Tensors parameters, gradients;
  std::vector<Tensors> state;
};

Columns columns_of(const std::vector<OptimizedParameter>& parameters, bool decayed, std::size_t states) {
  Columns columns;
  columns.state.resize(states);
  for (const OptimizedParameter& p : parameters) {
    if ((p.parameter.dim() >= 2) != decayed) {
      continue;
    }
    columns.parameters.push_back(p.parameter);
    columns.gradients.push_back(p.gradient);
    for (std::size_t s = 0; s < states; ++s) {
      columns.state[s].push_back(p.state[s]);
    }
  }
  return columns;
}

void apply_columns(const AdamW& adamw, double lr, double decay, std::int64_t step, Columns& c) {
  Tensors steps(c.parameters.size());
  for (at::Tensor& s : steps) {
    s = at::full({}, static_cast<float>(step), at::kFloat);
  }
  at::_fused_adamw_(c.parameters, c.gradients, c.state[0], c.state[1], Tensors{}, steps, lr, adamw.beta1, adamw.beta2, decay,
                    adamw.eps, /*amsgrad=*/false, /*maximize=*/false);
}

void apply_columns(const Sgd& sgd, double lr, double decay, std::int64_t step, Columns& c) {
  at::_fused_sgd_(c.parameters, c.gradients, c.state.empty() ? Tensors{} : c.state[0], decay, sgd.momentum, lr,
                  /*dampening=*/0.0, /*nesterov=*/false, /*maximize=*/false, /*is_first_step=*/step == 1);
}

// One of each per optimizer: a new one does not compile before it has them.

std::string_view name_of(const AdamW&) { return "adamw"; }
std::string_view name_of(const Sgd&) { return "sgd"; }

std::vector<std::string_view> states_of(const AdamW&) { return {"exp_avg", "exp_avg_sq"}; }
std::vector<std::string_view> states_of(const Sgd& sgd) {
  return sgd.momentum != 0.0 ? std::vector<std::string_view>{"momentum"} : std::vector<std::string_view>{};
}

}  // namespace

double learning_rate_at(const LearningRate& schedule, double base, std::int64_t step) {
  const auto position = static_cast<double>(step);
  const auto warmup = static_cast<double>(schedule.warmup);
  if (step < schedule.warmup) {
    return base * (position + 1.0) / warmup;
  }
  if (schedule.kind == LearningRate::Kind::Constant) {
    return base;
  }
  const double span = std::max(1.0, static_cast<double>(schedule.total_steps) - warmup);
  const double progress = std::min(1.0, (position - warmup) / span);
  return base * 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
}

double base_learning_rate(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return o.lr; }, optimizer);
}

std::string_view optimizer_name(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return name_of(o); }, optimizer);
}

std::vector<std::string_view> state_names(const Optimizer& optimizer) {
  return std::visit([](const auto& o) { return states_of(o); }, optimizer);
}

void apply(const Optimizer& optimizer, double learning_rate, std::int64_t step, std::vector<OptimizedParameter>& parameters) {
  const std::size_t states = state_names(optimizer).size();
  for (const bool decayed : {true, false}) {
    Columns columns = columns_of(parameters, decayed, states);
    if (columns.parameters.empty()) {
      continue;
    }
    std::visit(
        [&](const auto& o) { apply_columns(o, learning_rate, decayed ? o.weight_decay : 0.0, step, columns); }, optimizer);
  }
}

}  // namespace stagecraft
