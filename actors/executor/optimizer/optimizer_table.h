/// optimizer_table is the table of optimizers, a line for each. The registry (optimizer_registry.h)
/// and command lines follow it. It does not include LibTorch.
///
/// To add an optimizer, append its record to the list and include its header.
/// OT-1: a row has its settings in the order in which the record has its fields.
/// OT-2: an optimizer keeps its place in the list, which is its number in a rank's setup.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "stagecraft/actors/executor/optimizer/adagrad.h"
#include "stagecraft/actors/executor/optimizer/adam.h"
#include "stagecraft/actors/executor/optimizer/adamw.h"
#include "stagecraft/actors/executor/optimizer/optimizer_row.h"
#include "stagecraft/actors/executor/optimizer/rmsprop.h"
#include "stagecraft/actors/executor/optimizer/sgd.h"

namespace stagecraft {

/// EachOptimizer is a list of the records of all optimizers that have a name, with `Others` after
/// them.
template <template <class...> class List, class... Others>
using EachOptimizer = List<AdamW,    // adamw.h
                           Sgd,      // sgd.h
                           Adam,     // adam.h
                           Adagrad,  // adagrad.h
                           RMSprop,  // rmsprop.h
                           Others...>;

/// OptimizerInfo describes an optimizer for a command line.
struct OptimizerInfo {
  std::string_view name;    ///< in checkpoints and on command lines
  std::string_view record;  ///< the record that has its settings as fields
  std::span<const SettingInfo> settings;
  std::span<const double> defaults;  ///< of the settings; a switch is 0 or 1
};

namespace internal {

/// Holds the defaults of a record's settings.
template <class Record>
inline constexpr auto kDefaults = [] {
  std::array<double, OptimizerRow<Record>::kSettings.size()> all{};
  Record record;
  visit_fields(record, [&](const auto&... field) {
    static_assert(sizeof...(field) == all.size(), "every setting has a name");
    std::size_t next = 0;
    ((all[next++] = static_cast<double>(field)), ...);
  });
  return all;
}();

template <class... Records>
struct InfoList {
  static constexpr std::array<OptimizerInfo, sizeof...(Records)> kAll{
      OptimizerInfo{OptimizerRow<Records>::kName,
                    OptimizerRow<Records>::kRecord,
                    OptimizerRow<Records>::kSettings,
                    kDefaults<Records>}...};
};

}  // namespace internal

/// Lists all optimizers that have a name, in the order of the table.
inline constexpr auto& kOptimizers = EachOptimizer<internal::InfoList>::kAll;

}  // namespace stagecraft
