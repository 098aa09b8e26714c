#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"

#include <cmath>
#include <map>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Calls `visitor` with each setting and the field of that name.
template <class O, class V>
void visit_settings(O& optimizer, V&& visitor) {
  constexpr const auto& kSettings = OptimizerRow<std::remove_const_t<O>>::kSettings;
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
                              OptimizerRow<O>::kRecord,
                              setting.name,
                              words(setting.range),
                              value));
    }
  });
  if (const std::string conflict = OptimizerRow<O>::conflict(optimizer); !conflict.empty()) {
    throw Error(Errc::UsageArgument, fmt::format("{}::{}", OptimizerRow<O>::kRecord, conflict));
  }
}

/// The records of the table.
template <class... Record>
struct Records {
  /// Returns the record of that name with its defaults; nothing for an unknown name.
  static std::optional<Optimizer> named(std::string_view name) {
    std::optional<Optimizer> found;
    ((OptimizerRow<Record>::kName == name ? void(found.emplace(Record{})) : void()), ...);
    return found;
  }
};

// Decay, rate, the number of the update of the parameter, dtype.
using Kind = std::tuple<double, double, std::int64_t, at::ScalarType>;

std::map<Kind, ParameterColumns> columns_of(const std::vector<OptimizedParameter>& parameters,
                                            double learning_rate,
                                            const UpdateNumbers& numbers,
                                            double base) {
  std::map<Kind, ParameterColumns> all;
  for (const OptimizedParameter& p : parameters) {
    const std::int64_t number = numbers.of(p.rule.group);
    if (number == 0) {
      continue;  // keeps PG-3
    }
    ParameterColumns& columns = all[{p.rule.weight_decay,
                                     rate_of(p.rule, learning_rate, base),
                                     number,
                                     p.parameter.scalar_type()}];
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
          return OptimizerRow<O>::kName;
        }
      },
      optimizer);
}

std::optional<Optimizer> optimizer_named(std::string_view name) {
  return EachOptimizer<Records>::named(name);
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
  return std::visit([]<class O>(const O& o) { return OptimizerRow<O>::states(o); }, optimizer);
}

bool keeps_squares(const Optimizer& optimizer) {
  return std::visit([]<class O>(const O&) { return OptimizerRow<O>::kKeepsSquares; }, optimizer);
}

double initial_state_value(const Optimizer& optimizer) {
  return std::visit([]<class O>(const O& o) { return OptimizerRow<O>::initial_state(o); },
                    optimizer);
}

void apply(const Optimizer& optimizer,
           double learning_rate,
           const UpdateNumbers& numbers,
           std::vector<OptimizedParameter>& parameters,
           double divisor) {
  for (const OptimizedParameter& p : parameters) {
    if (numbers.of(p.rule.group) == 0) {
      p.gradient.div_(divisor);
    }
  }
  for (auto& [kind, columns] :
       columns_of(parameters, learning_rate, numbers, base_learning_rate(optimizer))) {
    const UpdatePass pass{.rate = std::get<1>(kind),
                          .decay = std::get<0>(kind),
                          .step = std::get<2>(kind),
                          .divisor = divisor};
    std::visit(
        [&, &taken = columns]<class O>(const O& o) { OptimizerRow<O>::update(o, pass, taken); },
        optimizer);
  }
}

void try_optimizer(const Optimizer& optimizer, const std::vector<OptimizedParameter>& parameters) {
  if (std::holds_alternative<CustomOptimizer>(optimizer)) {
    return;
  }
  for (const OptimizedParameter& p : parameters) {
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(p.parameter.dim()), 1);
    const auto one = [&] { return at::zeros(sizes, p.updated().options().requires_grad(false)); };
    std::vector<OptimizedParameter> scratch{
        {.parameter = one(), .gradient = one(), .state = {}, .rule = {}, .name = p.name}};
    for (std::size_t s = 0; s < p.state.size(); ++s) {
      scratch[0].state.push_back(one());
    }
    try {
      apply(optimizer, 0.0, {}, scratch);
    } catch (const c10::Error& e) {
      throw Error(Errc::UsageArgument,
                  fmt::format("the optimizer {} does not take parameters of type {}: keep them in "
                              "Float and compute under autocast, or freeze them ({})",
                              optimizer_name(optimizer),
                              at::toString(p.updated().scalar_type()),
                              e.what_without_backtrace()));
    }
  }
}

}  // namespace stagecraft
