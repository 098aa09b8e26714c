#include "stagecraft/tools/train/job/places.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/output_place.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/trace/trace_file.h"
#include "stagecraft/tools/train/catalog/models.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

template <class Try>
void check_place(const NamedFile& output, Try&& attempt) {
  const auto& [option, path] = output;
  if (path == "-") {
    throw Error(Errc::UsageFile,
                fmt::format("{} expects a file, found '-'; ./- is a file of that name", option));
  }
  try {
    attempt(path);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", option, error.message()));
  }
}

/// Checks a folder that will be made, or that gets files.
void check_folder(const std::string& path) {
  std::error_code ignored;
  fs::path there = fs::absolute(path);
  while (!fs::exists(there, ignored) && there.has_relative_path()) {
    there = there.parent_path();
  }
  if (!fs::is_directory(there, ignored)) {
    throw Error(Errc::UsageFile,
                fmt::format("expected a folder, or a place for one, found the file '{}'; name "
                            "another",
                            there.string()));
  }
  const WholeFile tried((there / "tried").string());
}

void try_file(const std::string& path) {
  const WholeFile tried(path);
}

void try_file_or_stream(const std::string& path) {
  if (!output_place(path).is_stream()) {
    try_file(path);
  }
}

void try_weights(const std::string& path) {
  check_weights_place(path, {});
}

/// Checks a file that the run writes, and adds it to those that later outputs must not overwrite.
template <class Try>
void check_output(const char* option,
                  const std::optional<std::string>& path,
                  Try&& attempt,
                  std::vector<NamedFile>& others) {
  if (path) {
    const NamedFile output{option, *path};
    check_place(output, attempt);
    check_apart(output, others);
    others.push_back(output);
  }
}

/// Returns the files that the run reads; without checkpoint and weights, which outputs may replace.
std::vector<NamedFile> inputs_of(const TrainOptions& options) {
  std::vector<NamedFile> inputs;
  const auto add = [&](const char* option, const std::optional<std::string>& path) {
    if (path) {
      inputs.emplace_back(option, *path);
    }
  };
  if (options.model.file) {
    add("--model-file", options.model.file);
  } else if (find_model(options.model.name).data == "text") {
    add("--text", options.data.text);
  }
  const PipelineOptions& pipeline = options.pipeline;
  if (pipeline.cut && pipeline.cut->starts_with('@')) {
    add("--cut", pipeline.cut->substr(1));
  }
  std::error_code ignored;
  if (fs::exists(pipeline.schedule, ignored)) {
    add("--schedule", pipeline.schedule);
  }
  add("--strategy", pipeline.strategy);
  add("--costs", options.costs.in);
  return inputs;
}

}  // namespace

void check_places(const TrainOptions& options, const RunStart& start) {
  const KeepingOptions& keeping = options.keeping;
  std::vector<NamedFile> others = inputs_of(options);
  // --save may name the file of --load, and --save-weights that of --load-weights: both were read
  // before.
  check_output("--save", keeping.save, &try_file, others);
  check_output("--save-weights", keeping.save_weights, &try_weights, others);
  check_output("--save-module", keeping.save_module, &try_file, others);
  for (const auto& [option, path] :
       {std::pair{"--save-dir", keeping.save_dir}, std::pair{"--metrics", keeping.metrics}}) {
    if (path) {
      check_place({option, *path}, &check_folder);
    }
  }
  if (start.weights) {
    const NamedFile weights{"--load-weights", *start.weights};
    if (keeping.save) {
      check_apart({"--save", *keeping.save}, {weights});
    }
    others.push_back(weights);
  }
  check_output("--cut-out", options.pipeline.cut_out, &try_file_or_stream, others);
  check_output("--strategy-out", options.pipeline.strategy_out, &try_file_or_stream, others);
  check_output("--costs-out", options.costs.out, &try_file_or_stream, others);
  if (start.checkpoint) {
    others.emplace_back("--load", *start.checkpoint);
  }
  check_output("--trace", keeping.trace, &TraceWriter::check_place, others);
}

}  // namespace stagecraft::tools
