#include "stagecraft/actors/executor/stage/shard_layout.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/gradient_norm.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kFloats = 16;  // in 64 bytes

TEST_CASE("one shard is the tensors one after the other, at multiples of 64 bytes",
          "[executor][shards]") {
  const ShardLayout layout = shard_layout({10, 16, 3}, kFloats, 1);
  CHECK(layout.begins == Sizes{0, 16, 32});
  CHECK(layout.ends == Sizes{10, 32, 35});
  CHECK(layout.size() == 48);
  CHECK(layout.part(1, 0).begin == 0);
  CHECK(layout.part(1, 0).end == 16);
  CHECK(layout.part(1, 0).at == 16);
}

TEST_CASE("small tensors fill shards of one block", "[executor][shards]") {
  const ShardLayout layout = shard_layout({10}, kFloats, 4);
  CHECK(layout.shard == kNormBlock);
  CHECK(layout.part(0, 0).size() == 10);
  CHECK(layout.part(0, 1).size() == 0);
}

TEST_CASE("SD-1, SD-2: shards divide tensors behind whole blocks, and have every element once",
          "[executor][shards]") {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const auto shards = static_cast<std::int32_t>(2 + random() % 6);
    Sizes sizes(1 + random() % 9);
    for (std::int64_t& size : sizes) {
      size = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 20 : random() % 9000);
    }
    const ShardLayout layout = shard_layout(sizes, kFloats, shards);
    CAPTURE(sizes, shards, layout.shard, layout.begins);
    CHECK(layout.shard % kNormBlock == 0);
    std::int64_t padding = 0;
    std::int64_t end = 0;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      CHECK(layout.begins[t] % kFloats == 0);
      CHECK(layout.begins[t] >= end);
      padding += layout.begins[t] - end;
      end = layout.ends[t];
      std::int64_t covered = 0;
      for (std::int32_t shard = 0; shard < shards; ++shard) {
        const ShardLayout::Part part = layout.part(t, shard);
        if (part.size() == 0) {
          continue;
        }
        CHECK(part.begin == covered);
        CHECK((part.begin % kNormBlock == 0 && part.at % kFloats == 0));
        CHECK(shard * layout.shard + part.at == layout.begins[t] + part.begin);
        covered = part.end;
      }
      CHECK(covered == sizes[t]);
    }
    CHECK(end <= layout.size());
    // A block for each end of a shard, and the alignment of each tensor.
    CHECK(padding <= (shards - 1) * kNormBlock + std::ssize(sizes) * kFloats);
    const std::int64_t whole = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    CHECK(layout.size() <= whole + (2 * shards) * kNormBlock + std::ssize(sizes) * kFloats);
  }
}

TEST_CASE("a share's name tells the range, and names of whole tensors tell none",
          "[executor][shards]") {
  const auto share = share_named(share_name("exp_avg:fc.weight", 1024, 4096));
  REQUIRE(share);
  CHECK(share->name == "exp_avg:fc.weight");
  CHECK(share->begin == 1024);
  CHECK(share->end == 4096);
  for (const char* whole :
       {"exp_avg:fc.weight", "a [1, 2]", "a [1)", "a [x, 2)", "a [1, 2x)", " )", ""}) {
    CHECK_FALSE(share_named(whole));
  }
}

}  // namespace
}  // namespace stagecraft
