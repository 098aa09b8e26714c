/// Tests files of tokens: windows, their targets, and the headers of llm.c.
#include "stagecraft/compiler/data/shards/token_shards.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>

#include "stagecraft/compiler/data/shard_folder.h"
#include "stagecraft/tests/compiler/tensor_files/tensor_file_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::same_tensor;
using tests::TemporaryFolder;

template <class Token>
std::string tokens_from(std::int64_t first, std::int64_t count) {
  std::string bytes;
  for (std::int64_t i = first; i < first + count; ++i) {
    const auto token = static_cast<Token>(i);
    bytes.append(reinterpret_cast<const char*>(&token), sizeof token);
  }
  return bytes;
}

std::string llm_c_header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::vector<std::int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return {reinterpret_cast<const char*>(header.data()), header.size() * sizeof(std::int32_t)};
}

/// A model of windows of three tokens.
std::vector<ModelTensor> windows(std::size_t inputs) {
  return std::vector<ModelTensor>(
      inputs, {.name = "tokens", .known = true, .dtype = at::kLong, .sizes = {-1, 3}});
}

}  // namespace

TEST_CASE("a window of tokens has the tokens one later as its targets",
          "[compiler][data][shards][tokens]") {
  const TemporaryFolder folder;
  (void)folder.write("a.bin", tokens_from<std::uint16_t>(65000, 9));  // 2 windows, and 2 tokens
  (void)folder.write("b.bin", tokens_from<std::uint16_t>(100, 3));    // no token behind the window
  (void)folder.write("c.bin", llm_c_header(20240520, 1, 5) + tokens_from<std::uint16_t>(200, 5));
  (void)folder.write("d.bin",
                     llm_c_header(20240801, 7, 4) + tokens_from<std::uint32_t>(100'000, 4));
  (void)folder.write("e.bin", "");
  const ShardFolder data(folder.path(),
                         {.inputs = windows(2), .microbatch_size = 4, .seed = std::nullopt});
  CHECK(data.samples() == 4);
  CHECK(data.arguments().at(1) == ArgumentHeader{at::kLong, {4, 3}});
  const std::vector<at::Tensor> found = data.microbatch(0, 0);
  REQUIRE(found.size() == 2);
  const std::vector<std::int64_t> firsts{65000, 65003, 200, 100'000};
  for (std::size_t i = 0; i < firsts.size(); ++i) {
    CAPTURE(i);
    const auto row = static_cast<std::int64_t>(i);
    CHECK(same_tensor(found[0].select(0, row), at::arange(firsts[i], firsts[i] + 3)));
    CHECK(same_tensor(found[1].select(0, row), at::arange(firsts[i] + 1, firsts[i] + 4)));
  }
}

TEST_CASE("a model with one input takes windows without targets",
          "[compiler][data][shards][tokens]") {
  const TemporaryFolder folder;
  (void)folder.write("a.bin", tokens_from<std::uint16_t>(0, 12));
  const ShardFolder data(folder.path(),
                         {.inputs = windows(1), .microbatch_size = 4, .seed = std::nullopt});
  CHECK(data.steps() == 1);
  REQUIRE(data.arguments().size() == 1);
  CHECK(same_tensor(data.microbatch(0, 0).at(0), at::arange(12).view({4, 3})));
}

TEST_CASE("files that are no tokens, and models without windows, are refused",
          "[compiler][data][shards][tokens][hostile]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::vector<ModelTensor>& inputs) {
    return refusal(
        [&] { const ShardFolder data(folder.path(), {.inputs = inputs, .microbatch_size = 1}); },
        Errc::UsageFile);
  };
  const auto with = [&](const std::string& bytes) {
    (void)folder.write("a.bin", bytes);
    return refused(windows(2));
  };
  CHECK_THAT(with("odd"), ContainsSubstring("a.bin: expected tokens of 2 bytes, found 3 bytes"));
  CHECK_THAT(with(llm_c_header(20240520, 2, 0)), ContainsSubstring("expected version 1"));
  CHECK_THAT(with(llm_c_header(20240801, 1, 0)), ContainsSubstring("expected version 7"));
  for (const std::int32_t count : {-1, 3, 2'147'483'647}) {
    CHECK_THAT(with(llm_c_header(20240520, 1, count) + tokens_from<std::uint16_t>(0, 4)),
               ContainsSubstring("as the header says, found 4"));
  }
  CHECK_THAT(with(llm_c_header(20240801, 7, 1) + "12345"),
             ContainsSubstring("tokens of 4 bytes, found 5 bytes"));
  CHECK_THAT(with(tokens_from<std::uint16_t>(0, 3)), ContainsSubstring("found 0 samples"));
  std::vector<ModelTensor> huge = windows(2);
  huge[0].sizes[1] = huge[1].sizes[1] = std::int64_t{1} << 62U;
  (void)folder.write("a.bin", tokens_from<std::uint16_t>(0, 40));
  CHECK_THAT(refused(huge), ContainsSubstring("found 0 samples"));

  std::vector<ModelTensor> other = windows(2);
  other[1].sizes = {-1, 4};
  std::vector<ModelTensor> open = windows(2);
  open[0].sizes = {4, -1};
  for (const auto& inputs : {std::vector<ModelTensor>(),
                             windows(3),
                             other,
                             open,
                             std::vector<ModelTensor>(2, {.name = "of a TorchScript file"})}) {
    CHECK_THAT(refused(inputs), ContainsSubstring("[samples, tokens]"));
  }
}

}  // namespace stagecraft
