#include "stagecraft/actors/executor/optimizer.h"

#include <cmath>
#include <map>
#include <numbers>
#include <utility>

#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The tensors of some parameters, regrouped the way the fused kernels take them: of one dtype,
/// decayed alike.
struct Columns {
  Tensors parameters, gradients;
  std::vector<Tensors> state;
};

std::map<std::pair<bool, at::ScalarType>, Columns> columns_of(
    const std::vector<OptimizedParameter>& parameters, std::size_t states) {
  std::map<std::pair<bool, at::ScalarType>, Columns> all;
  for (const OptimizedParameter& p : parameters) {
    Columns& columns = all[{p.parameter.dim() >= 2, p.parameter.scalar_type()}];
    columns.state.resize(states);
    columns.parameters.push_back(p.parameter);
    columns.gradients.push_back(p.gradient);
    for (std::size_t s = 0; s < states; ++s) {
      columns.state[s].push_back(p.state[s]);
    }
  }
  return all;
}

void apply_columns(const AdamW& adamw, double lr, double decay, std::int64_t step, Columns& c) {
  Tensors steps(c.parameters.size());
  for (at::Tensor& s : steps) {
    s = at::full({}, static_cast<float>(step), at::kFloat);
  }
  at::_fused_adamw_(c.parameters,
                    c.gradients,
                    c.state[0],
                    c.state[1],
                    Tensors{},
                    steps,
                    lr,
                    adamw.beta1,
                    adamw.beta2,
                    decay,
                    adamw.eps,
                    /*amsgrad=*/false,
                    /*maximize=*/false);
}

void apply_columns(const Sgd& sgd, double lr, double decay, std::int64_t step, Columns& c) {
  at::_fused_sgd_(c.parameters,
                  c.gradients,
                  c.state.empty() ? Tensors{} : c.state[0],
                  decay,
                  sgd.momentum,
                  lr,
                  /*dampening=*/0.0,
                  /*nesterov=*/false,
                  /*maximize=*/false,
                  /*is_first_step=*/step == 1);
}

// One of each per optimizer: a new one does not compile before it has them.

std::string_view name_of(const AdamW&) {
  return "adamw";
}
std::string_view name_of(const Sgd&) {
  return "sgd";
}

std::vector<std::string_view> states_of(const AdamW&) {
  return {"exp_avg", "exp_avg_sq"};
}
std::vector<std::string_view> states_of(const Sgd& sgd) {
  return sgd.momentum != 0.0 ? std::vector<std::string_view>{"momentum"}
                             : std::vector<std::string_view>{};
}

void require(bool good, std::string_view setting, double value, std::string_view range) {
  if (!good) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} is a number {}, not {}", setting, range, value));
  }
}
void require_from_zero(std::string_view setting, double value) {
  require(std::isfinite(value) && value >= 0.0, setting, value, "from 0 on");
}
void require_share(std::string_view setting, double value) {
  require(value >= 0.0 && value < 1.0, setting, value, "from 0 up to, not including, 1");
}

void check_settings(const AdamW& adamw) {
  require_from_zero("AdamW::lr", adamw.lr);
  require_share("AdamW::beta1", adamw.beta1);
  require_share("AdamW::beta2", adamw.beta2);
  require_from_zero("AdamW::eps", adamw.eps);
  require_from_zero("AdamW::weight_decay", adamw.weight_decay);
}
void check_settings(const Sgd& sgd) {
  require_from_zero("Sgd::lr", sgd.lr);
  require_from_zero("Sgd::momentum", sgd.momentum);
  require_from_zero("Sgd::weight_decay", sgd.weight_decay);
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

void check_optimizer(const Optimizer& optimizer) {
  std::visit([](const auto& o) { check_settings(o); }, optimizer);
}

void apply(const Optimizer& optimizer,
           double learning_rate,
           std::int64_t step,
           std::vector<OptimizedParameter>& parameters) {
  for (auto& [kind, columns] : columns_of(parameters, state_names(optimizer).size())) {
    const bool decayed = kind.first;
    std::visit(
        [&](const auto& o) {
          apply_columns(o, learning_rate, decayed ? o.weight_decay : 0.0, step, columns);
        },
        optimizer);
  }
}

void try_optimizer(const Optimizer& optimizer, const std::vector<OptimizedParameter>& parameters) {
  for (const OptimizedParameter& p : parameters) {
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(p.parameter.dim()), 1);
    const auto one = [&] { return at::zeros(sizes, p.parameter.options().requires_grad(false)); };
    std::vector<OptimizedParameter> scratch{{.parameter = one(), .gradient = one(), .state = {}}};
    for (std::size_t s = 0; s < p.state.size(); ++s) {
      scratch[0].state.push_back(one());
    }
    try {
      apply(optimizer, 0.0, 1, scratch);
    } catch (const c10::Error& e) {
      throw Error(Errc::UsageArgument,
                  fmt::format("the optimizer {} does not take parameters of type {}: keep them in "
                              "Float and compute under "
                              "autocast, or freeze them ({})",
                              optimizer_name(optimizer),
                              at::toString(p.parameter.scalar_type()),
                              e.what_without_backtrace()));
    }
  }
}

}  // namespace stagecraft
