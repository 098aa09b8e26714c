#include "stagecraft/tools/eval/prediction_files.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/compiler/tensor_files/weights.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

std::string prediction_name(std::int64_t microbatch, int in_step, std::size_t output) {
  return fmt::format("step{}_mb{}_out{}", microbatch / in_step, microbatch % in_step, output);
}

[[noreturn]] void refuse_place(const std::string& path, const std::string& what) {
  throw Error(Errc::UsageFile, fmt::format("--output: {}: {}", path, what));
}

/// Returns whether a folder of data could hold the file.
bool names_data(const std::string& name) {
  return name.ends_with(".npy") || name.ends_with(".safetensors") || name.ends_with(".bin");
}

/// Errors: UsageFile for a file of tensors with another name.
void refuse_foreign_files(const std::string& folder, const std::set<std::string>& expected) {
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (names_data(name) && !expected.contains(name)) {
      refuse_place(folder,
                   fmt::format("expected a folder without other tensors, found '{}', which is no "
                               "output for these data; name another folder",
                               name));
    }
  }
  if (failure) {
    refuse_place(folder, fmt::format("the folder cannot be read: {}", failure.message()));
  }
}

}  // namespace

PredictionFiles::PredictionFiles(std::string path, Microbatches microbatches, std::size_t outputs)
    : path_(std::move(path)), microbatches_(microbatches) {
  if (is_weights_file(path_)) {
    return;
  }
  std::error_code failure;
  fs::create_directory(path_, failure);
  if (failure) {
    refuse_place(path_, fmt::format("the folder cannot be made: {}", failure.message()));
  }
  std::set<std::string> expected;
  for (std::int64_t m = 0; m < microbatches_.all(); ++m) {
    for (std::size_t i = 0; i < outputs; ++i) {
      expected.insert(prediction_name(m, microbatches_.in_step, i) + ".npy");
    }
  }
  refuse_foreign_files(path_, expected);
}

void PredictionFiles::add(const std::vector<at::Tensor>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = prediction_name(next_, microbatches_.in_step, i);
    if (is_weights_file(path_)) {
      tensors_.push_back({name, outputs[i]});
    } else {
      write_npy((fs::path(path_) / (name + ".npy")).string(), outputs[i]);
    }
  }
  ++next_;
}

void PredictionFiles::close() {
  if (is_weights_file(path_)) {
    write_safetensors(path_, tensors_);
  }
}

}  // namespace stagecraft::tools
