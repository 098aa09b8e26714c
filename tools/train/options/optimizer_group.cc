#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/executor/optimizer/optimizer_table.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/train/options/groups.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kOptimizerGroup = "Optimizer (docs/train-command.md)";

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerInfo& optimizer : kOptimizers) {
    names.emplace_back(optimizer.name);
  }
  return names;
}

std::vector<std::string> optimizers_with(std::string_view setting) {
  std::vector<std::string> names;
  for (const OptimizerInfo& optimizer : kOptimizers) {
    if (std::ranges::find(optimizer.settings, setting, &SettingInfo::name) !=
        optimizer.settings.end()) {
      names.emplace_back(optimizer.name);
    }
  }
  return names;
}

std::string option_of(std::string_view setting) {
  std::string text = "--" + std::string(setting);
  std::ranges::replace(text, '_', '-');
  return text;
}

struct SettingHelp {
  const char* text;
  double limit = 0.0;  ///< stricter than the setting's range; 0: none
};

SettingHelp help_of(std::string_view setting) {
  static const std::map<std::string_view, SettingHelp> kHelp{
      {"weight_decay", {"weight decay [0.1 for adamw, else 0]"}},
      {"beta1", {"decay rate of the mean of gradients [0.9]"}},
      {"beta2", {"decay rate of the mean of squared gradients [0.95 for adamw, 0.999 for adam]"}},
      {"eps", {"number added to the denominator [1e-8, 1e-10 for adagrad]"}},
      {"amsgrad", {"divide by the largest mean of squared gradients so far"}},
      {"momentum", {"momentum factor [0]", 1.0}},
      {"dampening", {"dampening of the momentum [0]"}},
      {"nesterov", {"use Nesterov momentum"}},
      {"lr_decay", {"decay of the learning rate per step [0]"}},
      {"initial_accumulator_value", {"initial sum of squared gradients [0]"}},
      {"alpha", {"decay rate of the mean of squared gradients [0.99]"}},
      {"centered", {"divide by the variance of the gradients"}},
  };
  return kHelp.at(setting);
}

/// Adds each setting of the optimizers once; all but the learning rate, which has a default of its
/// own.
void add_settings(CLI::App& app, OptimizerOptions& o) {
  for (const OptimizerInfo& optimizer : kOptimizers) {
    for (const SettingInfo& setting : optimizer.settings) {
      const std::string option = option_of(setting.name);
      if (setting.name == "lr" || app.get_option_no_throw(option) != nullptr) {
        continue;
      }
      const SettingHelp help = help_of(setting.name);
      const std::vector<std::string> whose = optimizers_with(setting.name);
      const std::string text = whose.size() == kOptimizers.size()
                                   ? help.text
                                   : fmt::format("{}: {}", fmt::join(whose, ", "), help.text);
      const std::string name(setting.name);
      if (setting.range == SettingRange::Switch) {
        app.add_flag_callback(
               option, [&o, name] { o.settings[name] = 1.0; }, text)
            ->group(kOptimizerGroup);
      } else {
        app.add_option_function<double>(
               option, [&o, name](const double& value) { o.settings[name] = value; }, text)
            ->check(number_from_zero(setting.range == SettingRange::Share ? 1.0 : help.limit))
            ->group(kOptimizerGroup);
      }
    }
  }
}

void add_patterns(CLI::App& app,
                  const char* option,
                  std::vector<std::string>& patterns,
                  const std::string& about) {
  app.add_option(option, patterns, about + ", e.g. '*.bias'; may be repeated")
      ->type_name("PATTERN")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kOptimizerGroup);
}

}  // namespace

void add_optimizer(CLI::App& app, OptimizerOptions& o) {
  const std::vector<std::string> names = optimizer_names();
  app.add_option("--optimizer", o.name, "optimizer")
      ->check(one_of(names))
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->group(kOptimizerGroup);
  app.add_option("--lr", o.rate, "learning rate")->check(positive_number())->group(kOptimizerGroup);
  add_choice<RateKind>(app,
                       "--lr-schedule",
                       o.rate_kind,
                       {{"constant", RateKind::Constant},
                        {"cosine", RateKind::Cosine},
                        {"linear", RateKind::Linear}},
                       "learning rate after the warm-up; cosine and linear fall to 0 at --steps")
      ->group(kOptimizerGroup);
  app.add_option("--warmup", o.warmup, "steps of linear warm-up of the learning rate")
      ->check(whole_number(0))
      ->group(kOptimizerGroup);
  add_settings(app, o);
  add_choice<DecayKind>(app,
                        "--decay-on",
                        o.decay_on,
                        {{"matrices", DecayKind::Matrices}, {"all", DecayKind::All}},
                        "parameters with weight decay: those of two or more dimensions, or all")
      ->group(kOptimizerGroup);
  add_patterns(app, "--no-decay", o.no_decay, "further parameters without weight decay");
  add_patterns(app, "--freeze", o.freeze, "parameters that are not trained");
  app.add_option("--clip", o.clip, "largest norm of the gradient of all parameters together [none]")
      ->check(positive_number())
      ->group(kOptimizerGroup);
}

void check_optimizer_settings(const OptimizerOptions& o) {
  for (const auto& [setting, value] : o.settings) {
    const std::vector<std::string> whose = optimizers_with(setting);
    if (std::ranges::find(whose, o.name) == whose.end()) {
      wrong_usage(kTrainCommand,
                  fmt::format("{} expects --optimizer {}, found {}; leave one of the two out",
                              option_of(setting),
                              words_text(whose),
                              o.name));
    }
  }
}

}  // namespace stagecraft::tools
