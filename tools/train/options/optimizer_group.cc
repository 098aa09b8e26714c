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
#include "stagecraft/tools/train/options/optimizer_defaults.h"

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

/// Returns the defaults of a setting as text: "0.9", "0.1 for adamw, 0 for others".
std::string default_text(std::string_view setting, const std::vector<std::string>& whose) {
  std::map<double, std::vector<std::string>> names;  // by default
  for (const std::string& name : whose) {
    names[default_setting(name, setting)].push_back(name);
  }
  const auto common = std::ranges::max_element(
      names, {}, [](const auto& of_value) { return of_value.second.size(); });
  if (names.size() == 1) {
    return fmt::format("{}", common->first);
  }
  std::vector<std::string> parts;
  for (const auto& [value, of_value] : names) {
    if (value != common->first || of_value.size() == 1) {
      parts.push_back(fmt::format("{} for {}", value, fmt::join(of_value, ", ")));
    }
  }
  if (common->second.size() > 1) {
    parts.push_back(fmt::format("{} for others", common->first));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Returns "rmsprop: decay rate of the mean of squared gradients [0.99]".
std::string help_of(const SettingInfo& setting, const std::vector<std::string>& whose) {
  std::string text;
  if (whose.size() != kOptimizers.size()) {
    text = fmt::format("{}: ", fmt::join(whose, ", "));
  }
  text += setting.about;
  if (setting.range != SettingRange::Switch) {
    text += fmt::format(" [{}]", default_text(setting.name, whose));
  }
  return text;
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
      const std::vector<std::string> whose = optimizers_with(setting.name);
      const std::string text = help_of(setting, whose);
      const std::string name(setting.name);
      if (setting.range == SettingRange::Switch) {
        app.add_flag_callback(
               option, [&o, name] { o.settings[name] = 1.0; }, text)
            ->group(kOptimizerGroup);
      } else {
        app.add_option_function<double>(
               option, [&o, name](const double& value) { o.settings[name] = value; }, text)
            ->check(number_from_zero(setting.range == SettingRange::Share ? 1.0 : setting.below))
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

/// Returns the patterns and steps of --freeze-for, as they were given.
std::vector<std::pair<std::string, std::int64_t>> freezes(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::int64_t>> all;
  for (const std::string& word : words) {
    const std::string pattern = word.substr(0, word.find('='));
    std::string steps = word.substr(std::min(pattern.size() + 1, word.size()));
    if (pattern.empty() || !whole_number(1)(steps).empty()) {
      wrong_usage(kTrainCommand,
                  fmt::format("--freeze-for expects PATTERN=STEPS, with a whole number of steps "
                              "from 1 on, found '{}'",
                              word));
    }
    all.emplace_back(pattern, std::stoll(steps));
  }
  return all;
}

void check_rate_options(const OptimizerOptions& o, const CLI::App& app) {
  if (o.decay_steps && o.rate_kind != RateKind::Wsd) {
    wrong_usage(kTrainCommand,
                "--decay-steps expects --lr-schedule wsd; leave it out, or choose wsd");
  }
  if (o.lr_patience && o.rate_kind != RateKind::Plateau) {
    wrong_usage(kTrainCommand,
                "--lr-patience expects --lr-schedule plateau; leave it out, or choose plateau");
  }
  if (app.count("--lr-epochs") > 0 && o.rate_kind != RateKind::Epoch) {
    wrong_usage(kTrainCommand,
                "--lr-epochs expects --lr-schedule epoch; leave it out, or choose epoch");
  }
  if (o.lr_factor && o.rate_kind != RateKind::Plateau && o.rate_kind != RateKind::Epoch) {
    wrong_usage(kTrainCommand,
                "--lr-factor expects --lr-schedule plateau or epoch; leave it out, or choose one "
                "of them");
  }
  if (o.lr_factor && *o.lr_factor >= 1.0) {
    wrong_usage(kTrainCommand,
                fmt::format("--lr-factor expects a number below 1, found {}", *o.lr_factor));
  }
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
                        {"linear", RateKind::Linear},
                        {"wsd", RateKind::Wsd},
                        {"plateau", RateKind::Plateau},
                        {"epoch", RateKind::Epoch}},
                       "learning rate after the warm-up; cosine and linear fall to 0 at --steps, "
                       "wsd in the last --decay-steps, plateau when evaluations no longer improve, "
                       "epoch after every --lr-epochs")
      ->group(kOptimizerGroup);
  app.add_option("--warmup", o.warmup, "steps of linear warm-up of the learning rate")
      ->check(whole_number(0))
      ->group(kOptimizerGroup);
  app.add_option("--decay-steps",
                 o.decay_steps,
                 "last steps, in which a wsd learning rate falls to 0 [a tenth of --steps, or what "
                 "--warmup leaves]")
      ->check(whole_number(1))
      ->group(kOptimizerGroup);
  app.add_option("--lr-factor",
                 o.lr_factor,
                 "factor of the rate on each plateau, or after --lr-epochs [0.1]")
      ->check(positive_number())
      ->group(kOptimizerGroup);
  app.add_option("--lr-epochs", o.lr_epochs, "times that --data are read between two factors")
      ->check(whole_number(1))
      ->group(kOptimizerGroup);
  app.add_option("--lr-patience",
                 o.lr_patience,
                 "evaluations in a row without a better loss that make a plateau [10]")
      ->check(whole_number(1))
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
  app.add_option_function<std::vector<std::string>>(
         "--freeze-for",
         [&o](const std::vector<std::string>& words) { o.freeze_for = freezes(words); },
         "parameters that are not trained in the first steps, e.g. 'layers.0.*=100'; may be "
         "repeated")
      ->type_name("PATTERN=STEPS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kOptimizerGroup);
  app.add_option("--clip", o.clip, "largest norm of the gradient of all parameters together [none]")
      ->check(positive_number())
      ->group(kOptimizerGroup);
  app.add_option("--clip-value", o.clip_value, "instead: largest size of its elements [none]")
      ->check(positive_number())
      ->excludes("--clip")
      ->group(kOptimizerGroup);
  app.add_option("--average",
                 o.average,
                 "keep an average of each weight, of which this share stays in a step [none]")
      ->check(number_from_zero(1.0))
      ->group(kOptimizerGroup);
  app.add_flag("--master-weights",
               o.master_weights,
               "update float32 masters of weights in bfloat16 or float16, which model files may "
               "have, and round them to the weights")
      ->group(kOptimizerGroup);
}

void check_optimizer_settings(const OptimizerOptions& o, const CLI::App& app) {
  check_rate_options(o, app);
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
