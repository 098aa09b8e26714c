/// Tests folders of shards: which samples a step gets, epoch after epoch (FH-1), the part that is
/// held out (FH-2), and the three forms of files.
#include "stagecraft/compiler/data/shard_folder.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/tensor_files/npy.h"
#include "stagecraft/compiler/tensor_files/safetensors.h"
#include "stagecraft/tests/compiler/tensor_files/tensor_file_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::counted;
using testing::same_tensor;
using tests::TemporaryFolder;

/// Writes samples [begin, end) as a shard: argument 0 is [sample, -sample], argument 1 the sample.
void write_samples(const std::string& folder,
                   const std::string& shard,
                   std::int64_t begin,
                   std::int64_t end) {
  const at::Tensor samples = at::arange(begin, end);
  write_npy(fmt::format("{}/{}_arg0.npy", folder, shard), at::stack({samples, -samples}, 1));
  write_npy(fmt::format("{}/{}_arg1.npy", folder, shard), samples);
}

/// Returns the samples of steps [from, to), in their order; checks that arguments belong together.
std::vector<std::int64_t> samples_in(const ShardFolder& data, std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> samples;
  for (std::int64_t step = from; step < to; ++step) {
    for (int m = 0; m < data.microbatches(); ++m) {
      const std::vector<at::Tensor> arguments = data.microbatch(step, m);
      REQUIRE(arguments.size() == 2);
      CHECK(same_tensor(arguments[0], at::stack({arguments[1], -arguments[1]}, 1)));
      const auto* first = arguments[1].const_data_ptr<std::int64_t>();
      samples.insert(samples.end(), first, first + arguments[1].numel());
    }
  }
  return samples;
}

std::vector<std::int64_t> in_order(std::vector<std::int64_t> samples) {
  std::ranges::sort(samples);
  return samples;
}

std::vector<std::int64_t> from_to(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

}  // namespace

TEST_CASE("FH-1: an epoch has every sample once, and each epoch its own order",
          "[compiler][data][shards]") {
  const TemporaryFolder folder;
  write_samples(folder.path(), "b", 5, 17);
  write_samples(folder.path(), "a", 0, 5);
  write_samples(folder.path(), "c", 17, 17);  // a shard may be empty
  write_samples(folder.path(), "d", 17, 24);
  (void)folder.write("notes.txt", "other files may lie there");
  const DataRequest request{.microbatches = 3, .microbatch_size = 2, .seed = 7};
  const ShardFolder data(folder.path(), request);
  CHECK(data.samples() == 24);
  CHECK(data.steps() == 4);
  CHECK(data.microbatches() == 3);
  CHECK(data.arguments().at(0) == ArgumentHeader{at::kLong, {2, 2}});
  CHECK(data.arguments().at(1) == ArgumentHeader{at::kLong, {2}});
  CHECK(data.bytes_of_step() == 3 * (2 * 2 * 8 + 2 * 8));
  std::vector<std::vector<std::int64_t>> epochs;
  for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
    epochs.push_back(samples_in(data, 4 * epoch, 4 * epoch + 4));
    CHECK(in_order(epochs.back()) == from_to(0, 24));
    CHECK(epochs.back() != from_to(0, 24));
  }
  CHECK(epochs[0] != epochs[1]);
  CHECK(epochs[1] != epochs[2]);

  // MD-1: a run that begins at a later step gets the same samples.
  CHECK(samples_in(ShardFolder(folder.path(), request), 5, 8) == samples_in(data, 5, 8));
  DataRequest other = request;
  other.seed = 8;
  CHECK(samples_in(ShardFolder(folder.path(), other), 0, 4) != epochs[0]);
  other.seed = std::nullopt;
  const ShardFolder stored(folder.path(), other);
  CHECK(samples_in(stored, 0, 4) == from_to(0, 24));
  CHECK(samples_in(stored, 4, 8) == from_to(0, 24));
  CHECK_THAT(stored.where(0, 2, 1), ContainsSubstring("/a_arg1.npy"));
  CHECK_THAT(stored.where(3, 2, 0), ContainsSubstring("/d_arg0.npy"));
  const Batch batch = stored.batch(1);
  CHECK(same_tensor(batch.at(1).tensor, at::arange(6, 12)));
  CHECK(same_tensor(stored.batch(1, 2).at(1).tensor, at::arange(6, 18)));
}

TEST_CASE("samples that do not fill a step are left out, other ones in each epoch",
          "[compiler][data][shards]") {
  const TemporaryFolder folder;
  write_samples(folder.path(), "a", 0, 11);
  const ShardFolder data(folder.path(), {.microbatches = 2, .microbatch_size = 2});
  CHECK(data.steps() == 2);
  bool differ = false;
  std::vector<std::int64_t> before;
  for (std::int64_t epoch = 0; epoch < 4; ++epoch) {
    const std::vector<std::int64_t> samples = in_order(samples_in(data, 2 * epoch, 2 * epoch + 2));
    CHECK(samples.size() == 8);
    CHECK(std::ranges::adjacent_find(samples) == samples.end());
    differ = differ || (epoch > 0 && samples != before);
    before = samples;
  }
  CHECK(differ);
}

TEST_CASE("FH-2: the last samples are held out, and come in their order",
          "[compiler][data][shards]") {
  const TemporaryFolder folder;
  write_samples(folder.path(), "a", 0, 7);
  write_samples(folder.path(), "b", 7, 20);
  DataRequest request{.microbatches = 1, .microbatch_size = 3, .held_out = 0.3};
  const ShardFolder training(folder.path(), request);
  request.part = DataPart::HeldOut;
  const ShardFolder held_out(folder.path(), request);
  CHECK(training.samples() == 14);
  CHECK(held_out.samples() == 6);
  CHECK(held_out.steps() == 2);
  CHECK(samples_in(held_out, 0, 2) == from_to(14, 20));
  CHECK(samples_in(held_out, 2, 4) == from_to(14, 20));
  for (const std::int64_t sample : samples_in(training, 0, 12)) {
    CHECK(sample < 14);
  }

  const auto refused = [&](const DataRequest& wrong, Errc code) {
    return refusal([&] { const ShardFolder data(folder.path(), wrong); }, code);
  };
  request.microbatch_size = 7;
  CHECK_THAT(refused(request, Errc::UsageFile),
             ContainsSubstring("1 microbatch of 7 samples for a step, found 6 samples that are held"
                               " out"));
  request.part = DataPart::Training;
  request.microbatches = 3;
  CHECK_THAT(refused(request, Errc::UsageFile), ContainsSubstring("found 14 samples that are not"));
  for (const double fraction : {-0.1, 1.0, 1e300, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THAT(refused({.microbatch_size = 1, .held_out = fraction}, Errc::UsageArgument),
               ContainsSubstring("at least 0 and below 1"));
  }
}

TEST_CASE("microbatches have the size of the request, or of the model's inputs",
          "[compiler][data][shards][bad-input]") {
  const TemporaryFolder folder;
  write_samples(folder.path(), "a", 0, 12);
  const ModelTensor open{.name = "x", .known = true, .dtype = at::kLong, .sizes = {-1, 2}};
  const ModelTensor fixed{.name = "x", .known = true, .dtype = at::kLong, .sizes = {3, 2}};
  CHECK(stated_microbatch_size({open}) == std::nullopt);
  CHECK(stated_microbatch_size({ModelTensor{.name = "unknown"}, fixed}) == 3);
  CHECK(ShardFolder(folder.path(), {.inputs = {fixed}}).arguments().at(0).sizes.at(0) == 3);
  CHECK(ShardFolder(folder.path(), {.inputs = {open}, .microbatch_size = 4}).steps() == 3);
  const auto refused = [&](const DataRequest& wrong, Errc code = Errc::UsageArgument) {
    return refusal([&] { const ShardFolder data(folder.path(), wrong); }, code);
  };
  CHECK_THAT(refused({.inputs = {open}}), ContainsSubstring("open; give their number"));
  CHECK_THAT(refused({.microbatches = 0, .microbatch_size = 1}), ContainsSubstring("found 0 of 1"));
  CHECK_THAT(refused({.microbatch_size = -2}), ContainsSubstring("found 1 of -2"));
  for (const std::int64_t size : {std::int64_t{7}, std::numeric_limits<std::int64_t>::max()}) {
    CHECK_THAT(refused({.microbatches = 2, .microbatch_size = size}, Errc::UsageFile),
               ContainsSubstring("found 12 samples; use fewer or smaller microbatches"));
  }
}

TEST_CASE("samples are the same in .npy and .safetensors shards, of every type",
          "[compiler][data][shards]") {
  const TemporaryFolder npy, numbered, named;
  std::vector<at::ScalarType> types = testing::numpy_types();
  std::erase(types, at::kComplexDouble);  // safetensors has none
  for (const int shard : {0, 1}) {
    std::vector<NamedTensor> numbers, names{{"unused", at::arange(3)}};
    for (std::size_t i = 0; i < types.size(); ++i) {
      const at::Tensor rows = counted(types[i], {6, 3, 2}).narrow(0, 2 * shard, 2 + 2 * shard);
      write_npy(fmt::format("{}/s{}_arg{}.npy", npy.path(), shard, i), rows);
      numbers.push_back({fmt::format("arg{}", i), rows});
      names.push_back({fmt::format("input{}", types.size() - i), rows});
    }
    write_safetensors(fmt::format("{}/s{}.safetensors", numbered.path(), shard), numbers);
    write_safetensors(fmt::format("{}/s{}.safetensors", named.path(), shard), names);
  }
  DataRequest request{.microbatches = 1, .microbatch_size = 3, .seed = 4};
  const ShardFolder a(npy.path(), request), b(numbered.path(), request);
  for (std::size_t i = 0; i < types.size(); ++i) {
    request.inputs.push_back({.name = fmt::format("input{}", types.size() - i)});
  }
  const ShardFolder c(named.path(), request);
  CHECK(a.steps() == 2);
  for (std::int64_t step = 0; step < 3; ++step) {
    const std::vector<at::Tensor> expected = a.microbatch(step, 0);
    for (const ShardFolder* other : {&b, &c}) {
      const std::vector<at::Tensor> found = other->microbatch(step, 0);
      REQUIRE(found.size() == types.size());
      for (std::size_t i = 0; i < types.size(); ++i) {
        CAPTURE(step, i);
        CHECK(same_tensor(found[i], expected[i]));
      }
    }
  }
  // Rows 2 and 3 of the shards together, in the order of the files.
  request.seed = std::nullopt;
  const ShardFolder stored(named.path(), request);
  CHECK(same_tensor(
      at::cat({stored.microbatch(0, 0).at(7), stored.microbatch(1, 0).at(7)}).narrow(0, 2, 2),
      counted(types[7], {6, 3, 2}).narrow(0, 2, 2)));
}

TEST_CASE("one argument needs no number in the name of its file", "[compiler][data][shards]") {
  const TemporaryFolder folder;
  write_npy(folder.path() + "/train_00.npy", at::arange(0, 3));
  write_npy(folder.path() + "/train_01.npy", at::arange(3, 6));
  const ShardFolder data(folder.path(), {.microbatch_size = 6, .seed = std::nullopt});
  CHECK(same_tensor(data.microbatch(0, 0).at(0), at::arange(6)));
}

TEST_CASE("more shards than files that may be open are read", "[compiler][data][shards]") {
  const TemporaryFolder folder;
  constexpr std::int64_t kShards = 150;
  for (std::int64_t i = 0; i < kShards; ++i) {
    write_npy(fmt::format("{}/s{:03}.npy", folder.path(), i), at::tensor({i}));
  }
  const ShardFolder data(folder.path(), {.microbatch_size = kShards});
  const at::Tensor found = data.microbatch(0, 0).at(0);
  CHECK(same_tensor(std::get<0>(found.sort()), at::arange(kShards)));
}

TEST_CASE("a shard that becomes shorter while it is used is refused",
          "[compiler][data][shards][bad-input]") {
  const TemporaryFolder folder;
  write_samples(folder.path(), "a", 0, 4096);
  const ShardFolder data(folder.path(), {.microbatch_size = 4096});
  std::filesystem::resize_file(folder.path() + "/a_arg1.npy", 300);
  CHECK_THAT(refusal([&] { (void)data.microbatch(0, 0); }, Errc::UsageFile),
             ContainsSubstring("a_arg1.npy") && ContainsSubstring("a file that ends before"));
}

}  // namespace stagecraft
