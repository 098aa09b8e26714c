#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/ops/_fused_adagrad.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/optimizer_table.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/process_end.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;
using Names = std::vector<std::string>;

/// Parameters of one dtype, decay and rate, in columns as fused kernels take them.
struct Columns {
  Tensors parameters, gradients;
  std::vector<Tensors> state;
  std::vector<const OptimizedParameter*> rows;
};

/// The values that all parameters share.
struct Pass {
  double rate = 0.0;
  double decay = 0.0;
  std::int64_t step = 1;
  double divisor = 1.0;  // of the gradients

  /// Returns the step as the kernels take it: a number for each parameter. They only read it.
  [[nodiscard]] Tensors steps(const Columns& columns) const {
    return Tensors(columns.parameters.size(), at::full({}, static_cast<float>(step), at::kFloat));
  }

  void divide(const at::Tensor& gradient) const {
    if (divisor != 1.0) {
      gradient.div_(divisor);
    }
  }

  /// Returns the divisor for fused kernels, which divide as they read and write the quotient back.
  /// They take it in float and round it to the parameters' type, so this divides gradients of other
  /// types before: keeps OR-2.
  [[nodiscard]] std::optional<at::Tensor> grad_scale(const Columns& columns) const {
    if (divisor == 1.0) {
      return std::nullopt;
    }
    if (columns.parameters.front().scalar_type() == at::kFloat) {
      return at::full({}, divisor, at::kFloat);
    }
    for (const at::Tensor& gradient : columns.gradients) {
      divide(gradient);
    }
    return std::nullopt;
  }
};

// ---- the registry: one row per optimizer --------------------------------------------------------

template <class O>
struct Row;

/// The defaults of most rows.
struct Plain {
  template <class O>
  static std::string conflict(const O&) {
    return "";
  }
  template <class O>
  static double initial_state(const O&) {
    return 0.0;
  }
};

struct AdamRow : Plain {
  template <class O>
  static Names states(const O& adam) {
    return adam.amsgrad ? Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}
                        : Names{"exp_avg", "exp_avg_sq"};
  }
  template <class O>
  static void update(const auto& kernel, const O& adam, const Pass& pass, Columns& c) {
    kernel(c.parameters,
           c.gradients,
           c.state[0],
           c.state[1],
           adam.amsgrad ? c.state[2] : Tensors{},
           pass.steps(c),
           pass.rate,
           adam.beta1,
           adam.beta2,
           pass.decay,
           adam.eps,
           adam.amsgrad,
           /*maximize=*/false,
           pass.grad_scale(c));
  }
};

template <>
struct Row<AdamW> : AdamRow {
  static constexpr const OptimizerInfo& kInfo = kAdamWInfo;
  static void update(const AdamW& adamw, const Pass& pass, Columns& c) {
    AdamRow::update([](auto&&... a) { at::_fused_adamw_(a...); }, adamw, pass, c);
  }
};

template <>
struct Row<Adam> : AdamRow {
  static constexpr const OptimizerInfo& kInfo = kAdamInfo;
  static void update(const Adam& adam, const Pass& pass, Columns& c) {
    AdamRow::update([](auto&&... a) { at::_fused_adam_(a...); }, adam, pass, c);
  }
};

template <>
struct Row<Sgd> : Plain {
  static constexpr const OptimizerInfo& kInfo = kSgdInfo;
  static std::string conflict(const Sgd& sgd) {
    return sgd.nesterov && (sgd.momentum == 0.0 || sgd.dampening != 0.0)
               ? "nesterov needs a momentum above 0 and no dampening"
               : "";
  }
  static Names states(const Sgd& sgd) { return sgd.momentum != 0.0 ? Names{"momentum"} : Names{}; }
  static void update(const Sgd& sgd, const Pass& pass, Columns& c) {
    at::_fused_sgd_(c.parameters,
                    c.gradients,
                    c.state.empty() ? Tensors{} : c.state[0],
                    pass.decay,
                    sgd.momentum,
                    pass.rate,
                    sgd.dampening,
                    sgd.nesterov,
                    /*maximize=*/false,
                    /*is_first_step=*/pass.step == 1,
                    pass.grad_scale(c));
  }
};

template <>
struct Row<Adagrad> : Plain {
  static constexpr const OptimizerInfo& kInfo = kAdagradInfo;
  static Names states(const Adagrad&) { return {"sum"}; }
  static double initial_state(const Adagrad& adagrad) { return adagrad.initial_accumulator_value; }
  static void update(const Adagrad& adagrad, const Pass& pass, Columns& c) {
    at::_fused_adagrad_(c.parameters,
                        c.gradients,
                        c.state[0],
                        pass.steps(c),
                        pass.rate,
                        adagrad.lr_decay,
                        pass.decay,
                        adagrad.eps,
                        /*maximize=*/false,
                        pass.grad_scale(c));
  }
};

template <>
struct Row<RMSprop> : Plain {
  static constexpr const OptimizerInfo& kInfo = kRMSpropInfo;
  static Names states(const RMSprop& rmsprop) {
    Names names{"square_avg"};
    if (rmsprop.momentum != 0.0) {
      names.emplace_back("momentum_buffer");
    }
    if (rmsprop.centered) {
      names.emplace_back("grad_avg");
    }
    return names;
  }
  /// Updates block by block, so that all operators but the first find their operands in cache.
  static void update(const RMSprop& o, const Pass& pass, Columns& c) {
    const std::int64_t block = kBlock * at::get_num_threads();
    for (std::size_t i = 0; i < c.parameters.size(); ++i) {
      for (std::int64_t begin = 0; begin < c.parameters[i].numel(); begin += block) {
        const auto part = [&](const at::Tensor& whole) {
          return whole.view({-1}).slice(0, begin, begin + block);
        };
        Tensors state;
        for (const Tensors& column : c.state) {
          state.push_back(part(column[i]));
        }
        update_block(o, pass, part(c.parameters[i]), part(c.gradients[i]), state);
      }
    }
  }

 private:
  /// Elements per thread: enough that the data costs more time than the calls. LibTorch splits an
  /// element-wise operator over threads into no smaller parts.
  static constexpr std::int64_t kBlock = 32768;

  static void update_block(const RMSprop& o,
                           const Pass& pass,
                           const at::Tensor& parameter,
                           const at::Tensor& mean_gradient,
                           const Tensors& state) {
    pass.divide(mean_gradient);
    const at::Tensor gradient =
        pass.decay != 0.0 ? mean_gradient.add(parameter, pass.decay) : mean_gradient;
    const at::Tensor& square = state[0];
    square.mul_(o.alpha).addcmul_(gradient, gradient, 1.0 - o.alpha);
    at::Tensor average;
    if (o.centered) {
      const at::Tensor& mean = state.back();
      mean.mul_(o.alpha).add_(gradient, 1.0 - o.alpha);
      average = square.addcmul(mean, mean, -1.0).sqrt_().add_(o.eps);
    } else {
      average = square.sqrt().add_(o.eps);
    }
    if (o.momentum != 0.0) {
      const at::Tensor& buffer = state[1];
      buffer.mul_(o.momentum).addcdiv_(gradient, average);
      parameter.add_(buffer, -pass.rate);
    } else {
      parameter.addcdiv_(gradient, average, -pass.rate);
    }
  }
};

template <>
struct Row<CustomOptimizer> : Plain {
  static constexpr const OptimizerInfo& kInfo = kCustomInfo;
  static std::string conflict(const CustomOptimizer& custom) {
    if (!custom.update) {
      return "update is empty: it is the callable that changes a parameter";
    }
    if (custom.name.empty()) {
      return "name is empty: it is what a checkpoint calls the optimizer";
    }
    std::set<std::string> seen;
    for (const std::string& name : custom.state) {
      const std::string kind = name + ":";
      if (name.empty() || name.find(':') != std::string::npos || kind == kWeight ||
          kind == kBuffer || !seen.insert(name).second) {
        return fmt::format(
            "state has \"{}\": names are distinct, not empty, without a colon, and "
            "neither weight nor buffer",
            name);
      }
    }
    return "";
  }
  static Names states(const CustomOptimizer& custom) { return custom.state; }
  static void update(const CustomOptimizer& custom, const Pass& pass, Columns& c) {
    for (const OptimizedParameter* p : c.rows) {
      pass.divide(p->gradient);
      const process_end::Elsewhere in_the_users_code;
      custom.update({.name = p->name,
                     .parameter = p->parameter,
                     .gradient = p->gradient,
                     .state = p->state,
                     .step = pass.step,
                     .learning_rate = pass.rate,
                     .weight_decay = pass.decay});
    }
  }
};

// ---- functions over all rows --------------------------------------------------------------------

/// Calls `visitor` with each setting and the field of that name.
template <class O, class V>
void visit_settings(O& optimizer, V&& visitor) {
  constexpr const auto& kSettings = Row<std::remove_const_t<O>>::kInfo.settings;
  visit_fields(const_cast<std::remove_const_t<O>&>(optimizer), [&](auto&... field) {
    std::size_t next = 0;
    const auto visit = [&](auto& f) {
      using Field = std::remove_cvref_t<decltype(f)>;
      if constexpr (std::is_same_v<Field, double> || std::is_same_v<Field, bool>) {
        visitor(kSettings[next++], f);
      }
    };
    static_assert(
        (0 + ... + (std::is_arithmetic_v<std::remove_cvref_t<decltype(field)>> ? 1 : 0)) ==
            kSettings.size(),
        "every setting has a name");
    (visit(field), ...);
  });
}

bool is_in(SettingRange range, double value) {
  switch (range) {
    case SettingRange::FromZero:
      return std::isfinite(value) && value >= 0.0;
    case SettingRange::Share:
      return value >= 0.0 && value < 1.0;
    case SettingRange::Switch:
      return true;
  }
  return false;
}

std::string_view words(SettingRange range) {
  return range == SettingRange::Share ? "from 0 up to, not including, 1" : "from 0 on";
}

template <class O>
void check_settings(const O& optimizer) {
  visit_settings(optimizer, [](const SettingInfo& setting, const auto& value) {
    if (!is_in(setting.range, static_cast<double>(value))) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{}::{} is a number {}, not {}",
                              Row<O>::kInfo.record,
                              setting.name,
                              words(setting.range),
                              value));
    }
  });
  if (const std::string conflict = Row<O>::conflict(optimizer); !conflict.empty()) {
    throw Error(Errc::UsageArgument, fmt::format("{}::{}", Row<O>::kInfo.record, conflict));
  }
}

/// Returns every alternative of Optimizer except the custom one, with its defaults.
template <class... O>
std::vector<Optimizer> defaults_of(const std::variant<O...>*) {
  std::vector<Optimizer> all;
  const auto add = [&]<class Each>(Each optimizer) {
    if constexpr (!std::is_same_v<Each, CustomOptimizer>) {
      all.emplace_back(std::move(optimizer));
    }
  };
  (add(O{}), ...);
  return all;
}

using Kind = std::tuple<double, double, at::ScalarType>;  // decay, rate, dtype

std::map<Kind, Columns> columns_of(const std::vector<OptimizedParameter>& parameters,
                                   double learning_rate,
                                   double base) {
  std::map<Kind, Columns> all;
  for (const OptimizedParameter& p : parameters) {
    Columns& columns =
        all[{p.rule.weight_decay, rate_of(p.rule, learning_rate, base), p.parameter.scalar_type()}];
    columns.state.resize(p.state.size());
    columns.parameters.push_back(p.parameter);
    columns.gradients.push_back(p.gradient);
    for (std::size_t s = 0; s < p.state.size(); ++s) {
      columns.state[s].push_back(p.state[s]);
    }
    columns.rows.push_back(&p);
  }
  return all;
}

}  // namespace

std::string_view optimizer_name(const Optimizer& optimizer) {
  return std::visit(
      []<class O>(const O& o) -> std::string_view {
        if constexpr (std::is_same_v<O, CustomOptimizer>) {
          return o.name;
        } else {
          return Row<O>::kInfo.name;
        }
      },
      optimizer);
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const Optimizer& optimizer : defaults_of(static_cast<const Optimizer*>(nullptr))) {
    names.emplace_back(optimizer_name(optimizer));
  }
  return names;
}

std::optional<Optimizer> optimizer_named(std::string_view name) {
  for (const Optimizer& optimizer : defaults_of(static_cast<const Optimizer*>(nullptr))) {
    if (optimizer_name(optimizer) == name) {
      return optimizer;
    }
  }
  return std::nullopt;
}

std::vector<OptimizerSetting> settings_of(const Optimizer& optimizer) {
  std::vector<OptimizerSetting> all;
  std::visit(
      [&](const auto& o) {
        visit_settings(o, [&](const SettingInfo& setting, const auto& value) {
          all.push_back({setting.name, static_cast<double>(value)});
        });
      },
      optimizer);
  return all;
}

bool set_setting(Optimizer& optimizer, std::string_view name, double value) {
  bool found = false;
  std::visit(
      [&](auto& o) {
        visit_settings(o, [&](const SettingInfo& setting, auto& field) {
          if (setting.name == name) {
            field = static_cast<std::remove_reference_t<decltype(field)>>(value);
            found = true;
          }
        });
      },
      optimizer);
  return found;
}

void check_optimizer(const Optimizer& optimizer) {
  std::visit([](const auto& o) { check_settings(o); }, optimizer);
}

std::vector<std::string> state_names(const Optimizer& optimizer) {
  return std::visit([]<class O>(const O& o) { return Row<O>::states(o); }, optimizer);
}

double initial_state_value(const Optimizer& optimizer) {
  return std::visit([]<class O>(const O& o) { return Row<O>::initial_state(o); }, optimizer);
}

void apply(const Optimizer& optimizer,
           double learning_rate,
           std::int64_t step,
           std::vector<OptimizedParameter>& parameters,
           double divisor) {
  for (auto& [kind, columns] :
       columns_of(parameters, learning_rate, base_learning_rate(optimizer))) {
    const Pass pass{
        .rate = std::get<1>(kind), .decay = std::get<0>(kind), .step = step, .divisor = divisor};
    std::visit([&]<class O>(const O& o) { Row<O>::update(o, pass, columns); }, optimizer);
  }
}

void try_optimizer(const Optimizer& optimizer, const std::vector<OptimizedParameter>& parameters) {
  if (std::holds_alternative<CustomOptimizer>(optimizer)) {
    return;
  }
  for (const OptimizedParameter& p : parameters) {
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(p.parameter.dim()), 1);
    const auto one = [&] { return at::zeros(sizes, p.parameter.options().requires_grad(false)); };
    std::vector<OptimizedParameter> scratch{
        {.parameter = one(), .gradient = one(), .state = {}, .rule = {}, .name = p.name}};
    for (std::size_t s = 0; s < p.state.size(); ++s) {
      scratch[0].state.push_back(one());
    }
    try {
      apply(optimizer, 0.0, 1, scratch);
    } catch (const c10::Error& e) {
      throw Error(Errc::UsageArgument,
                  fmt::format("the optimizer {} does not take parameters of type {}: keep them in "
                              "Float and compute under autocast, or freeze them ({})",
                              optimizer_name(optimizer),
                              at::toString(p.parameter.scalar_type()),
                              e.what_without_backtrace()));
    }
  }
}

}  // namespace stagecraft
