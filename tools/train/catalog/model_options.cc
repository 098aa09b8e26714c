#include "stagecraft/tools/train/catalog/model_options.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"

namespace stagecraft::tools {
namespace {

CLI::Validator validator_of(ModelSize::Kind kind) {
  switch (kind) {
    case ModelSize::Kind::Whole:
      return whole_number(1);
    case ModelSize::Kind::Positive:
      return positive_number();
    case ModelSize::Kind::FromZeroToOne:
      return number_from_zero(1.0);
  }
  return {};
}

/// Returns the models that have a size of this name, and its meaning for each; groups models with
/// the same meaning.
std::string size_text(std::string_view name) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_meaning;
  for (const ModelEntry& model : models()) {
    const auto size = std::ranges::find(model.sizes, name, &ModelSize::name);
    if (size == model.sizes.end()) {
      continue;
    }
    const std::string meaning(size->meaning);
    const std::string fallback = size->fallback
                                     ? fmt::format("{} [{}]", model.name, *size->fallback)
                                     : std::string(model.name);
    auto at = std::ranges::find(by_meaning, meaning, [](const auto& one) { return one.first; });
    if (at == by_meaning.end()) {
      at = by_meaning.insert(by_meaning.end(), {meaning, {}});
    }
    at->second.push_back(fallback);
  }
  std::vector<std::string> parts;
  for (const auto& [meaning, names] : by_meaning) {
    parts.push_back(fmt::format("{}: {}", meaning, fmt::join(names, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

const ModelEntry& model_of(const std::string& command, const std::string& name) {
  try {
    return find_model(name);
  } catch (const Error& error) {
    wrong_usage(command, error.message());
  }
}

}  // namespace

void add_model(CLI::App& app, std::string& name_of, std::map<std::string, double>& given) {
  const std::string group = "Model (docs/train-command.md)";
  std::vector<std::string> about;
  for (const ModelEntry& model : models()) {
    about.push_back(fmt::format("{} ({})", model.name, model.summary));
  }
  app.add_option("--model", name_of, fmt::format("{}", fmt::join(about, ", ")))
      ->type_name("NAME")
      ->group(group);
  for (const ModelEntry& model : models()) {
    for (const ModelSize& size : model.sizes) {
      const std::string option = fmt::format("--{}", size.name);
      if (app.get_option_no_throw(option) == nullptr) {
        app.add_option_function<double>(
               option,
               [&given, name = std::string(size.name)](const double& value) {
                 given[name] = value;
               },
               size_text(size.name))
            ->check(validator_of(size.kind))
            ->type_name(size.kind == ModelSize::Kind::Whole ? "INT" : "FLOAT")
            ->group(group);
      }
    }
  }
}

ModelSizes sizes_of_named(const std::string& command,
                          const CLI::App& app,
                          const std::string& name,
                          const std::map<std::string, double>& given) {
  const ModelEntry& model = model_of(command, name);
  const auto refuse = [&](std::string_view option, const std::string& models) {
    wrong_usage(command,
                fmt::format("--{} is of {}, found --model {}; leave one of the two out",
                            option,
                            models,
                            model.name));
  };
  for (const std::string_view data : {"text", "images"}) {
    if (data != model.data && app.count(fmt::format("--{}", data)) > 0) {
      refuse(data, names_of_models([&](const ModelEntry& m) { return m.data == data; }));
    }
  }
  for (const auto& [size, value] : given) {
    const auto has = [&](const ModelEntry& m) {
      return std::ranges::find(m.sizes, size, &ModelSize::name) != m.sizes.end();
    };
    if (!has(model)) {
      refuse(size, names_of_models(has));
    }
  }
  ModelSizes sizes;
  for (const ModelSize& size : model.sizes) {
    const auto at = given.find(std::string(size.name));
    if (at != given.end() || size.fallback) {
      sizes.set(size.name, at != given.end() ? at->second : *size.fallback);
    }
  }
  if (const std::string wrong = model.wrong(sizes); !wrong.empty()) {
    wrong_usage(command, wrong);
  }
  return sizes;
}

}  // namespace stagecraft::tools
