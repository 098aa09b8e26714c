#include "stagecraft/compiler/data/microbatch_files.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/folder_names.h"
#include "stagecraft/compiler/tensor_files/npy.h"

namespace stagecraft {
namespace {

using Place = std::tuple<int, int, int>;  ///< step, microbatch, argument

std::string name_of(const Place& place) {
  const auto& [step, microbatch, argument] = place;
  return fmt::format("step{}_mb{}_arg{}.npy", step, microbatch, argument);
}

std::optional<Place> place_of(std::string_view name) {
  int numbers[3];
  int* number = numbers;
  for (const std::string_view word : {"step", "_mb", "_arg"}) {
    if (!name.starts_with(word)) {
      return std::nullopt;
    }
    const char* begin = name.data() + word.size();
    const auto [end, error] = std::from_chars(begin, name.data() + name.size(), *number++);
    if (error != std::errc()) {
      return std::nullopt;
    }
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  }
  return name == ".npy" ? std::optional(Place(numbers[0], numbers[1], numbers[2])) : std::nullopt;
}

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw Error(Errc::UsageFile, fmt::format("{}: {}", path, what));
}

std::set<Place> places_in(const std::string& folder) {
  std::set<Place> places;
  for (const std::string& name : names_in_folder(folder)) {
    const auto place = place_of(name);
    if (place && name_of(*place) == name) {
      places.insert(*place);
    } else if (MicrobatchFiles::may_name(name)) {
      refuse(
          folder + "/" + name,
          "expected a name like step0_mb0_arg0.npy, without leading zeros, among the data; rename "
          "it, or put it elsewhere");
    }
  }
  if (places.empty()) {
    refuse(
        folder,
        "expected files step<k>_mb<j>_arg<i>.npy (argument i of microbatch j of step k, from 0), "
        "found none");
  }
  return places;
}

std::string file_of(const std::string& folder,
                    std::int64_t step,
                    int microbatch,
                    std::size_t argument) {
  return fmt::format("{}/step{}_mb{}_arg{}.npy", folder, step, microbatch, argument);
}

}  // namespace

bool MicrobatchFiles::may_name(const std::string& name) {
  return name.starts_with("step") && name.ends_with(".npy");
}

MicrobatchFiles::MicrobatchFiles(std::string folder, std::uint64_t seed)
    : folder_(std::move(folder)), order_(seed, 1) {
  const std::set<Place> places = places_in(folder_);
  std::int64_t steps = 0;
  int arguments = 0;
  for (const auto& [step, microbatch, argument] : places) {
    steps = std::max<std::int64_t>(steps, std::int64_t{step} + 1);
    microbatches_ = std::max(microbatches_, microbatch + 1);
    arguments = std::max(arguments, argument + 1);
  }
  // Check in order: the numbers in names may be large, but there are only as many files as there
  // are.
  Place expected(0, 0, 0);
  const auto check = [&](const Place& found) {
    if (found != expected) {
      refuse(fmt::format("{}/{}", folder_, name_of(expected)),
             fmt::format("missing, although {} is there: every step has as many microbatches, and "
                         "every microbatch as many arguments",
                         name_of(found)));
    }
    auto& [step, microbatch, argument] = expected;
    if (++argument == arguments) {
      argument = 0;
      if (++microbatch == microbatches_) {
        microbatch = 0;
        ++step;
      }
    }
  };
  for (const Place& place : places) {
    check(place);
  }
  if (std::get<0>(expected) != steps) {  // the last microbatch ends too early
    refuse(fmt::format("{}/{}", folder_, name_of(expected)),
           fmt::format("missing: the folder has {} microbatches in a step and {} arguments in a "
                       "microbatch",
                       microbatches_,
                       arguments));
  }
  for (const auto& [step, microbatch, argument] : places) {
    const auto i = static_cast<std::size_t>(argument);
    const std::string path = file_of(folder_, step, microbatch, i);
    NpyHeader found = read_npy_header(path);
    ArgumentHeader header{found.dtype, std::move(found.sizes)};
    if (i == arguments_.size()) {
      arguments_.push_back(std::move(header));
    } else if (header != arguments_[i]) {
      refuse(path,
             fmt::format("expected {}, as {} has it, found {}; all microbatches are of one shape: "
                         "pad, or leave the odd one out",
                         to_string(arguments_[i]),
                         name_of({0, 0, argument}),
                         to_string(header)));
    }
  }
  order_ = EpochOrder(seed, steps);
}

std::string MicrobatchFiles::where(std::int64_t step, int microbatch, std::size_t argument) const {
  return file_of(folder_, order_.of(step), microbatch, argument);
}

std::vector<at::Tensor> MicrobatchFiles::microbatch(std::int64_t step, int microbatch) const {
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const std::string path = where(step, microbatch, i);
    const at::Tensor& tensor = tensors.emplace_back(read_npy(path));
    if (const ArgumentHeader found{tensor.scalar_type(), tensor.sizes().vec()};
        found != arguments_[i]) {
      refuse(path,
             fmt::format("expected {}, as when the run began, found {}",
                         to_string(arguments_[i]),
                         to_string(found)));
    }
  }
  return tensors;
}

}  // namespace stagecraft
