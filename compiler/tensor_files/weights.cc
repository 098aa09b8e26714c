#include "stagecraft/compiler/tensor_files/weights.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/output_place.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/libtorch/half_type.h"
#include "stagecraft/compiler/libtorch/type_text.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNpy = ".npy";
constexpr std::size_t kLongestName = 250;  // limit of a file name on Linux, with its extension

[[noreturn]] void refuse_weights(const std::string& path, const std::string& what) {
  throw Error(Errc::UsageFile, fmt::format("{}: {}", path, what));
}

/// Returns the names of the tensors that have a file in the folder, sorted.
std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    if (name.ends_with(kNpy)) {
      names.push_back(name.substr(0, name.size() - kNpy.size()));
    }
  }
  if (failure) {
    refuse_weights(
        folder,
        fmt::format("expected a folder of .npy files, or a file whose name ends in .safetensors{}",
                    failure == std::errc::no_such_file_or_directory ? ", found none"
                                                                    : "; " + failure.message()));
  }
  std::ranges::sort(names);
  return names;
}

std::string file_of(const std::string& folder, const std::string& name) {
  return (fs::path(folder) / (name + std::string(kNpy))).string();
}

void check_names(const std::string& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name.empty() || name.size() > kLongestName || name.front() == '.' ||
        name.find_first_of(std::string_view("/\0", 2)) != name.npos) {
      refuse_weights(
          folder,
          fmt::format("expected names that files can have, found the tensor '{}'; write one file "
                      "NAME.safetensors",
                      name));
    }
  }
}

/// Returns whether rounding to float16 makes a finite number infinite.
bool exceeds_float16(const at::Tensor& numbers) {
  return numbers.to(at::kHalf).isinf().ne(numbers.isinf()).any().item<bool>();
}

/// Returns the difference, or an empty string.
std::string difference(const at::Tensor& expected, const at::Tensor& found) {
  const bool widened = is_half_type(expected.scalar_type()) && found.scalar_type() == at::kFloat;
  if (expected.sizes() == found.sizes() &&
      (expected.scalar_type() == found.scalar_type() || widened)) {
    return widened && expected.scalar_type() == at::kHalf && exceeds_float16(found)
               ? "expected numbers that float16 can hold (up to 65504), found larger ones"
               : "";
  }
  const auto facts = [](const at::Tensor& t) {
    return fmt::format("{} [{}]", type_text(t.scalar_type()), fmt::join(t.sizes(), ", "));
  };
  return fmt::format("expected {}, found {}", facts(expected), facts(found));
}

using Names = std::map<std::string, at::Tensor>;

/// Comparison compares the tensors found with those of the model.
class Comparison {
 public:
  void find(const std::vector<NamedTensor>& found) {
    for (const NamedTensor& t : found) {
      found_.emplace(t.name, t.tensor.contiguous());
    }
  }

  void add(const std::vector<NamedTensor>& wanted, bool required) {
    for (const NamedTensor& t : wanted) {
      known_.insert(t.name);
      const auto found = found_.find(t.name);
      if (found != found_.end()) {
        take(t, found->second);
      }
    }
    for (const NamedTensor& t : wanted) {
      if (required && !taken_.contains(t.tensor.unsafeGetTensorImpl())) {
        // Report it once, even if it has several names.
        taken_.emplace(t.tensor.unsafeGetTensorImpl(), Taken{});
        complaints_.push_back(fmt::format("{}: missing", t.name));
      }
    }
  }

  void finish(const std::string& path) {
    for (const auto& [name, tensor] : found_) {
      if (!known_.contains(name)) {
        complaints_.push_back(fmt::format("{}: the model has none of this name", name));
      }
    }
    if (!complaints_.empty()) {
      refuse_weights(path,
                     fmt::format("expected the weights of the model, found {}:\n  {}",
                                 complaints_.size() == 1 ? "one tensor that does not fit"
                                                         : fmt::format("{} tensors that do not fit",
                                                                       complaints_.size()),
                                 fmt::join(complaints_, "\n  ")));
    }
    const at::NoGradGuard no_grad;
    for (const auto& [impl, taken] : taken_) {
      taken.to.copy_(taken.from);
    }
  }

 private:
  struct Taken {
    std::string name;
    at::Tensor to, from;
  };

  void take(const NamedTensor& to, const at::Tensor& from) {
    if (const std::string differs = difference(to.tensor, from); !differs.empty()) {
      complaints_.push_back(fmt::format("{}: {}", to.name, differs));
    }
    const auto [place, first] =
        taken_.emplace(to.tensor.unsafeGetTensorImpl(), Taken{to.name, to.tensor, from});
    if (!first && difference(place->second.from, from).empty() &&
        bytes(place->second.from) != bytes(from)) {
      complaints_.push_back(fmt::format("{}: differs from {}, but both are one tensor in the model",
                                        to.name,
                                        place->second.name));
    }
  }

  static std::string_view bytes(const at::Tensor& t) {
    return {static_cast<const char*>(t.const_data_ptr()), t.nbytes()};
  }

  std::map<std::string, at::Tensor> found_;
  std::map<const void*, Taken> taken_;  ///< by the model's tensor
  std::set<std::string> known_;
  std::vector<std::string> complaints_;
};

}  // namespace

bool is_weights_file(const std::string& path) {
  return path.ends_with(".safetensors");
}

std::vector<NamedTensor> read_weights(const std::string& path) {
  if (is_weights_file(path)) {
    return read_safetensors(path);
  }
  const std::vector<std::string> names = names_in(path);
  if (names.empty()) {
    refuse_weights(path, "expected .npy files named for the model's parameters, found none");
  }
  std::vector<NamedTensor> tensors;
  for (const std::string& name : names) {
    tensors.push_back({name, read_npy(file_of(path, name))});
  }
  return tensors;
}

void check_weights_place(const std::string& path, const std::vector<std::string>& names) {
  const OutputPlace place = output_place(path);
  if (is_weights_file(path)) {
    const WholeFile tried(path);
    return;
  }
  check_names(path, names);
  if (place.kind == OutputPlace::Kind::Absent) {
    const WholeFile tried(path);  // tests whether anything can be made there
    return;
  }
  for (const std::string& name : names_in(path)) {
    if (!names.empty() && std::ranges::find(names, name) == names.end()) {
      refuse_weights(
          path,
          fmt::format("expected a folder without tensors of another model, found '{}{}'; name "
                      "another folder",
                      name,
                      kNpy));
    }
  }
  const WholeFile tried((fs::path(path) / "tried.npy").string());
}

void write_weights(const std::string& path, const std::vector<NamedTensor>& tensors) {
  if (is_weights_file(path)) {
    write_safetensors(path, tensors);
    return;
  }
  std::vector<std::string> names;
  for (const NamedTensor& t : tensors) {
    names.push_back(t.name);
  }
  check_weights_place(path, names);
  std::error_code failure;
  fs::create_directory(path, failure);
  if (failure) {
    refuse_weights(path, fmt::format("the folder cannot be made: {}", failure.message()));
  }
  for (const NamedTensor& t : tensors) {
    write_npy(file_of(path, t.name), t.tensor);
  }
}

void load_weights(const std::string& path,
                  const std::vector<NamedTensor>& found,
                  const std::vector<NamedTensor>& parameters,
                  const std::vector<NamedTensor>& buffers) {
  Comparison comparison;
  comparison.find(found);
  comparison.add(parameters, /*required=*/true);
  comparison.add(buffers, /*required=*/false);
  comparison.finish(path);
}

void load_state(const std::string& from, const ModuleState& found, const ModuleState& to) {
  Comparison comparison;
  comparison.find(found.parameters);
  comparison.find(found.buffers);
  comparison.add(to.parameters, /*required=*/true);
  comparison.add(to.buffers, /*required=*/true);
  comparison.finish(from);
}

}  // namespace stagecraft
