#include "stagecraft/compiler/data/shard_folder.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/folder_names.h"
#include "stagecraft/compiler/data/shards/npy_shards.h"
#include "stagecraft/compiler/data/shards/safetensors_shards.h"
#include "stagecraft/compiler/data/shards/token_shards.h"

namespace stagecraft {
namespace {

[[noreturn]] void refuse_folder(const std::string& folder, const std::string& what) {
  throw Error(Errc::UsageFile, fmt::format("{}: {}", folder, what));
}

[[noreturn]] void refuse_request(const std::string& what) {
  throw Error(Errc::UsageArgument, what);
}

std::vector<std::string> ending(const std::vector<std::string>& names, std::string_view with) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name.ends_with(with)) {
      found.push_back(name);
    }
  }
  return found;
}

/// Returns the tokens of a sample.
std::int64_t window_of(const std::string& folder, const std::vector<ModelTensor>& inputs) {
  const auto has_window = [&](const ModelTensor& input) {
    return input.known && input.sizes.size() == 2 && input.sizes[1] > 0 &&
           input.sizes[1] == inputs.front().sizes[1];
  };
  if (inputs.empty() || inputs.size() > 2 || !std::ranges::all_of(inputs, has_window)) {
    refuse_folder(folder,
                  "files of tokens need a model whose file states an input of shape [samples, "
                  "tokens], and perhaps a second one for the targets; for another model write .npy "
                  "or .safetensors files");
  }
  return inputs.front().sizes[1];
}

std::vector<Shard> shards_in(const std::string& folder, const DataRequest& request) {
  const std::vector<std::string> names = names_in_folder(folder);
  const std::vector<std::string> npy = ending(names, ".npy");
  const std::vector<std::string> safetensors = ending(names, ".safetensors");
  const std::vector<std::string> tokens = ending(names, ".bin");
  const int forms = int{!npy.empty()} + int{!safetensors.empty()} + int{!tokens.empty()};
  if (forms != 1) {
    std::vector<std::string> found;
    for (const auto* form : {&npy, &safetensors, &tokens}) {
      if (!form->empty()) {
        found.push_back(text_of_names(*form));
      }
    }
    refuse_folder(folder,
                  fmt::format("expected data of one form: {}; found {}",
                              kDataForms,
                              found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", "))));
  }
  if (!npy.empty()) {
    return npy_shards(folder, npy);
  }
  if (!tokens.empty()) {
    const std::int64_t window = window_of(folder, request.inputs);
    return token_shards(folder, tokens, window, static_cast<int>(request.inputs.size()));
  }
  std::vector<std::string> inputs;
  for (const ModelTensor& input : request.inputs) {
    inputs.push_back(input.name);
  }
  return safetensors_shards(folder, safetensors, inputs);
}

std::int64_t size_of_microbatches(const DataRequest& request) {
  const auto size =
      request.microbatch_size ? request.microbatch_size : stated_microbatch_size(request.inputs);
  if (!size) {
    refuse_request("the model leaves the samples of a microbatch open; give their number");
  }
  if (*size < 1 || request.microbatches < 1) {
    refuse_request(
        fmt::format("expected at least one microbatch of at least one sample, found {} of {}",
                    request.microbatches,
                    *size));
  }
  return *size;
}

}  // namespace

ShardFolder::ShardFolder(std::string folder, const DataRequest& request)
    : folder_(std::move(folder)),
      rows_(shards_in(folder_, request)),
      microbatches_(request.microbatches),
      microbatch_size_(size_of_microbatches(request)) {
  choose_part(request);
  if (microbatch_size_ > count_ / microbatches_) {
    refuse_folder(
        folder_,
        fmt::format("expected at least the {} of {} for a step, found {}{}; use fewer or smaller "
                    "microbatches",
                    count_text(microbatches_, "microbatch"),
                    count_text(microbatch_size_, "sample"),
                    count_text(count_, "sample"),
                    request.held_out == 0.0              ? ""
                    : request.part == DataPart::Training ? " that are not held out"
                                                         : " that are held out"));
  }
  for (const ShardArgument& argument : rows_.arguments()) {
    ArgumentHeader& header =
        arguments_.emplace_back(ArgumentHeader{argument.dtype, argument.sizes});
    header.sizes.insert(header.sizes.begin(), microbatch_size_);
  }
  if (request.part == DataPart::Training && request.seed) {
    order_.emplace(*request.seed, count_, EpochOrder::First::Drawn);
  }
}

/// Keeps FH-2.
void ShardFolder::choose_part(const DataRequest& request) {
  if (!(request.held_out >= 0.0 && request.held_out < 1.0)) {
    refuse_request(fmt::format(
        "a fraction of samples to hold out is at least 0 and below 1, found {}", request.held_out));
  }
  const auto held_out =
      static_cast<std::int64_t>(std::llround(request.held_out * static_cast<double>(rows_.rows())));
  const std::int64_t trained = rows_.rows() - held_out;
  first_ = request.part == DataPart::Training ? 0 : trained;
  count_ = request.part == DataPart::Training ? trained : held_out;
}

std::int64_t ShardFolder::row(std::int64_t step, int microbatch, std::int64_t i) const {
  const std::int64_t place = step % steps() * of_step() + microbatch * microbatch_size_ + i;
  return first_ + (order_ ? order_->of(step / steps(), place) : place);
}

std::vector<at::Tensor> ShardFolder::microbatch(std::int64_t step, int microbatch) const {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < microbatch_size_; ++i) {
    rows.push_back(row(step, microbatch, i));
  }
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    tensors.push_back(rows_.read(i, rows));
  }
  return tensors;
}

std::string ShardFolder::where(std::int64_t step, int microbatch, std::size_t argument) const {
  return rows_.file(argument, row(step, microbatch, 0));
}

}  // namespace stagecraft
