#include "stagecraft/tools/train/options/optimizer_defaults.h"

#include <algorithm>
#include <cstddef>

#include "stagecraft/actors/executor/optimizer/optimizer_table.h"
#include "stagecraft/base/check.h"

namespace stagecraft::tools {
namespace {

/// A default that differs from the record's.
struct UsualValue {
  std::string_view optimizer;
  std::string_view setting;
  double value;
};

constexpr UsualValue kUsual[] = {{"adamw", "beta2", 0.95}, {"adamw", "weight_decay", 0.1}};

}  // namespace

double default_setting(std::string_view optimizer, std::string_view setting) {
  for (const UsualValue& usual : kUsual) {
    if (usual.optimizer == optimizer && usual.setting == setting) {
      return usual.value;
    }
  }
  const auto info = std::ranges::find(kOptimizers, optimizer, &OptimizerInfo::name);
  SC_CHECK(info != kOptimizers.end(), "the optimizer is in the table");
  const auto found = std::ranges::find(info->settings, setting, &SettingInfo::name);
  SC_CHECK(found != info->settings.end(), "the optimizer has the setting");
  return info->defaults[static_cast<std::size_t>(found - info->settings.begin())];
}

}  // namespace stagecraft::tools
