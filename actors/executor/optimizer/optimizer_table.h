/// The names of optimizers and of their settings, and the ranges of the settings, for command
/// lines. This part of the registry (optimizer_registry.h) does not include LibTorch.
///
/// OT-1: settings stand in the order in which the record of the optimizer lists its fields.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace stagecraft {

enum class SettingRange : std::uint8_t {
  FromZero,  ///< any finite number from 0 on
  Share,     ///< from 0 up to, not including, 1
  Switch,
};

struct SettingInfo {
  std::string_view name;  ///< the name of the record's field
  SettingRange range = SettingRange::FromZero;
};

struct OptimizerInfo {
  std::string_view name;    ///< in checkpoints and on command lines
  std::string_view record;  ///< the record that has its settings as fields
  std::span<const SettingInfo> settings;
};

inline constexpr std::array kAdamSettings{SettingInfo{"lr"},
                                          SettingInfo{"beta1", SettingRange::Share},
                                          SettingInfo{"beta2", SettingRange::Share},
                                          SettingInfo{"eps"},
                                          SettingInfo{"weight_decay"},
                                          SettingInfo{"amsgrad", SettingRange::Switch}};
inline constexpr std::array kSgdSettings{SettingInfo{"lr"},
                                         SettingInfo{"momentum"},
                                         SettingInfo{"dampening"},
                                         SettingInfo{"weight_decay"},
                                         SettingInfo{"nesterov", SettingRange::Switch}};
inline constexpr std::array kAdagradSettings{SettingInfo{"lr"},
                                             SettingInfo{"lr_decay"},
                                             SettingInfo{"weight_decay"},
                                             SettingInfo{"initial_accumulator_value"},
                                             SettingInfo{"eps"}};
inline constexpr std::array kRMSpropSettings{SettingInfo{"lr"},
                                             SettingInfo{"alpha", SettingRange::Share},
                                             SettingInfo{"eps"},
                                             SettingInfo{"weight_decay"},
                                             SettingInfo{"momentum"},
                                             SettingInfo{"centered", SettingRange::Switch}};
inline constexpr std::array kCustomSettings{SettingInfo{"lr"}, SettingInfo{"weight_decay"}};

inline constexpr OptimizerInfo kAdamWInfo{"adamw", "AdamW", kAdamSettings};
inline constexpr OptimizerInfo kSgdInfo{"sgd", "Sgd", kSgdSettings};
inline constexpr OptimizerInfo kAdamInfo{"adam", "Adam", kAdamSettings};
inline constexpr OptimizerInfo kAdagradInfo{"adagrad", "Adagrad", kAdagradSettings};
inline constexpr OptimizerInfo kRMSpropInfo{"rmsprop", "RMSprop", kRMSpropSettings};
inline constexpr OptimizerInfo kCustomInfo{"", "CustomOptimizer", kCustomSettings};  // own name

/// All optimizers that have a name, in the registry's order.
inline constexpr std::array kOptimizers{
    kAdamWInfo, kSgdInfo, kAdamInfo, kAdagradInfo, kRMSpropInfo};

}  // namespace stagecraft
