#include "stagecraft/tools/train/options/places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/output_place.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/tools/trace/trace_file.h"
#include "stagecraft/tools/train/catalog/models.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

/// An option and its file.
using Named = std::pair<std::string, std::string>;

template <class Try>
void check_place(const Named& output, Try&& attempt) {
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

/// Returns where a write to `path` ends: follows links, also to a file that does not exist yet.
fs::path end_of_links(const std::string& path) {
  std::error_code ignored;
  try {
    return fs::weakly_canonical(fs::absolute(output_place(path).path), ignored);
  } catch (const Error&) {  // not writable, so at most a file to read
    return fs::weakly_canonical(fs::absolute(path), ignored);
  }
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored) || end_of_links(a) == end_of_links(b);
}

/// Returns whether standard output goes to the file at `path`.
bool is_standard_output(const std::string& path) {
  struct stat out {};
  struct stat file {};
  return fstat(STDOUT_FILENO, &out) == 0 && S_ISREG(out.st_mode) &&
         stat(path.c_str(), &file) == 0 && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

/// Checks that `output` overwrites none of `others`, which are read or kept, and not standard
/// output.
void check_apart(const Named& output, const std::vector<Named>& others) {
  if (output_place(output.second).is_stream()) {
    return;
  }
  if (is_standard_output(output.second)) {
    throw Error(Errc::UsageFile,
                fmt::format("{} names '{}', to which standard output goes; name another",
                            output.first,
                            output.second));
  }
  for (const auto& [option, path] : others) {
    if (same_file(output.second, path)) {
      throw Error(Errc::UsageFile,
                  fmt::format("{} and {} name one file, '{}', which would be lost; name another",
                              output.first,
                              option,
                              path));
    }
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

}  // namespace

void check_places(const TrainOptions& options) {
  std::vector<Named> read;
  if (!options.model_file && find_model(options.model).data == "text") {
    read = {{"--text", options.text}};
  } else if (options.model_file) {
    read = {{"--model-file", *options.model_file}};
  }
  if (options.cut && options.cut->starts_with('@')) {
    read.emplace_back("--cut", options.cut->substr(1));
  }
  std::error_code ignored;
  if (fs::exists(options.schedule, ignored)) {
    read.emplace_back("--schedule", options.schedule);
  }
  if (options.costs) {
    read.emplace_back("--costs", *options.costs);
  }
  if (options.save) {
    const Named save{"--save", *options.save};
    check_place(save, [](const std::string& path) { const WholeFile tried(path); });
    check_apart(save, read);  // --load may name the same file: it was read before
    read.push_back(save);
  }
  if (options.save_weights) {
    const Named weights{"--save-weights", *options.save_weights};
    check_place(weights, [](const std::string& path) { check_weights_place(path, {}); });
    check_apart(weights, read);  // --load-weights may name the same place: it was read before
    read.push_back(weights);
  }
  if (options.save_module) {
    const Named module{"--save-module", *options.save_module};
    check_place(module, [](const std::string& path) { const WholeFile tried(path); });
    check_apart(module, read);
    read.push_back(module);
  }
  for (const auto& [option, path] :
       {std::pair{"--save-dir", options.save_dir}, std::pair{"--metrics", options.metrics}}) {
    if (path) {
      check_place({option, *path}, &check_folder);
    }
  }
  if (options.load_weights) {
    const Named weights{"--load-weights", *options.load_weights};
    if (options.save) {
      check_apart({"--save", *options.save}, {weights});
    }
    read.push_back(weights);
  }
  for (const auto& [option, path] :
       {std::pair{"--cut-out", options.cut_out}, std::pair{"--costs-out", options.costs_out}}) {
    if (path) {
      const Named made{option, *path};
      check_place(made, [](const std::string& file) {
        if (!output_place(file).is_stream()) {
          const WholeFile tried(file);
        }
      });
      check_apart(made, read);
      read.push_back(made);
    }
  }
  if (options.load) {
    read.emplace_back("--load", *options.load);
  }
  if (options.trace) {
    const Named trace{"--trace", *options.trace};
    check_place(trace, &TraceWriter::check_place);
    check_apart(trace, read);
  }
}

}  // namespace stagecraft::tools
