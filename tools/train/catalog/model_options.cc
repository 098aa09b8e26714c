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
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/train/catalog/models.h"

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

bool has_size(const ModelEntry& model, std::string_view size) {
  return std::ranges::find(model.sizes, size, &ModelSize::name) != model.sizes.end();
}

/// Returns the meaning of a size of this name and the models that have it, with their defaults;
/// models in which it means the same stand together.
std::string size_text(std::string_view name) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_meaning;
  for (const ModelEntry& model : models()) {
    const auto size = std::ranges::find(model.sizes, name, &ModelSize::name);
    if (size == model.sizes.end()) {
      continue;
    }
    const std::string meaning(size->meaning);
    const std::string usual = size->fallback
                                  ? fmt::format("{} [{}]", model.name, number_text(*size->fallback))
                                  : std::string(model.name);
    auto at = std::ranges::find(by_meaning, meaning, [](const auto& one) { return one.first; });
    if (at == by_meaning.end()) {
      at = by_meaning.insert(by_meaning.end(), {meaning, {}});
    }
    at->second.push_back(usual);
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

void add_named_model(CLI::App& app, ModelChoice& model) {
  const std::string group = "Model (docs/train-command.md)";
  std::vector<std::string_view> names;
  std::vector<std::string> about;
  for (const ModelEntry& entry : models()) {
    names.push_back(entry.name);
    about.push_back(fmt::format("{} ({})", entry.name, entry.summary));
  }
  app.add_option("--model", model.name, fmt::format("model: {}", fmt::join(about, ", ")))
      ->type_name(fmt::format("{}", fmt::join(names, "|")))
      ->group(group);
  for (const ModelEntry& entry : models()) {
    for (const ModelSize& size : entry.sizes) {
      const std::string option = fmt::format("--{}", size.name);
      if (app.get_option_no_throw(option) == nullptr) {
        app.add_option_function<double>(
               option,
               [&model, name = size.name](const double& value) { model.sizes.set(name, value); },
               size_text(size.name))
            ->check(validator_of(size.kind))
            ->type_name(size.kind == ModelSize::Kind::Whole ? "N" : "X")
            ->group(group);
      }
    }
  }
}

/// Refuses data and sizes that only other models have.
void refuse_foreign(const std::string& command,
                    const CLI::App& app,
                    const ModelEntry& entry,
                    const ModelSizes& given) {
  const auto refuse = [&](std::string_view option, const std::string& models) {
    wrong_usage(command,
                fmt::format("--{} is an option of {}, found --model {}; leave one of the two out",
                            option,
                            models,
                            entry.name));
  };
  for (const std::string_view data : {"text", "images"}) {
    if (data != entry.data && app.count(fmt::format("--{}", data)) > 0) {
      refuse(data, names_of_models([&](const ModelEntry& m) { return m.data == data; }));
    }
  }
  for (const auto& one : given.values()) {
    const auto& size = one.first;
    if (!has_size(entry, size)) {
      refuse(size, names_of_models([&](const ModelEntry& m) { return has_size(m, size); }));
    }
  }
}

void settle_named(const std::string& command, const CLI::App& app, ModelChoice& model) {
  const ModelEntry& entry = model_of(command, model.name);
  refuse_foreign(command, app, entry, model.sizes);
  for (const ModelSize& size : entry.sizes) {
    if (size.fallback && !model.sizes.has(size.name)) {
      model.sizes.set(size.name, *size.fallback);
    }
  }
  if (const std::string wrong = entry.wrong(model.sizes); !wrong.empty()) {
    wrong_usage(command, wrong);
  }
}

}  // namespace

void add_model_options(CLI::App& app, ModelChoice& model, DataPlaces& data) {
  add_named_model(app, model);
  const std::string group = "Model from a file (docs/models.md)";
  app.add_option("--model-file",
                 model.file,
                 "model file that torch.export.save or torch.jit.save wrote; replaces --model")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--data",
                 data.folder,
                 "folder with its inputs: shards of samples, <shard>_arg<i>.npy, .safetensors or "
                 ".bin (tokens); or whole microbatches, step<k>_mb<j>_arg<i>.npy")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--held-out",
                 data.held_out,
                 "fraction of the samples, the last ones, on which no step trains")
      ->check(number_from_zero(1.0))
      ->type_name("FRACTION")
      ->group(group);
  const std::string data_group = "Data";
  app.add_option("--text", data.text, "text to learn; its distinct bytes are the vocabulary")
      ->type_name("FILE")
      ->group(data_group);
  app.add_option("--images",
                 data.images,
                 "folder of PNG and JPEG files, one sub-folder per class; clip reads a "
                 "captions.txt instead [a few drawn shapes]")
      ->type_name("DIR")
      ->group(data_group);
}

void settle_model(const std::string& command,
                  const CLI::App& app,
                  ModelChoice& model,
                  const DataPlaces& data,
                  std::initializer_list<const char*> named_only) {
  const auto refuse = [&](const std::string& option, std::string_view why) {
    if (app.count(option) > 0) {
      wrong_usage(command, fmt::format("{} {}; leave one of the two out", option, why));
    }
  };
  if (!model.file) {
    refuse("--data", "expects --model-file, found none");
    refuse("--held-out", "expects --model-file, found none");
    settle_named(command, app, model);
    return;
  }
  constexpr const char* kNamed = "is an option of the models that have a name, found --model-file";
  for (const char* option : {"--model", "--text", "--images"}) {
    refuse(option, kNamed);
  }
  for (const char* option : named_only) {
    refuse(option, kNamed);
  }
  for (const auto& [size, value] : model.sizes.values()) {
    refuse(fmt::format("--{}", size), kNamed);
  }
  if (!data.folder) {
    wrong_usage(command,
                "--model-file expects --data DIR with the inputs of its steps, found none");
  }
}

}  // namespace stagecraft::tools
