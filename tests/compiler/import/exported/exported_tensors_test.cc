/// Tests the tensors of an exported program: they show only bytes of their own records (ET-2), and
/// tied ones are one tensor (ET-1).
#include "stagecraft/compiler/import/exported/exported_tensors.h"

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/load_model.h"
#include "stagecraft/tests/compiler/import/made_archive.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::Json;
using testing::MadeArchive;
using testing::small_archive;

std::string refused_tensor(const MadeArchive& archive) {
  return refusal([&] { (void)archive.read(); }, Errc::UsageFile);
}

TEST_CASE("ET-1: names of one record are one tensor if they show the same part of it",
          "[compiler][import]") {
  const auto tied = [](std::int64_t offset) {
    MadeArchive archive = small_archive();
    archive.parameter("tied", testing::small_weight());
    Json& config = archive.weights["config"];
    config["tied"]["path_name"] = config["fc.weight"]["path_name"];
    if (offset > 0) {  // the last row alone
      config["tied"]["tensor_meta"]["sizes"][0]["as_int"] = 1;
      config["tied"]["tensor_meta"]["storage_offset"]["as_int"] = offset;
    }
    return archive.read().parameters;
  };
  const std::vector<NamedTensor> same = tied(0);
  REQUIRE(same.size() == 3);
  CHECK(same[0].tensor.is_same(same[2].tensor));
  const std::vector<NamedTensor> part = tied(3);
  CHECK_FALSE(part[0].tensor.is_same(part[2].tensor));
  CHECK(part[0].tensor.is_alias_of(part[2].tensor));
}

TEST_CASE("a tensor outside of its record is refused", "[compiler][import]") {
  struct Case {
    std::string key;
    Json value;
    std::string said;
  };
  const auto ints = [](std::vector<std::int64_t> values) {
    Json list = Json::array();
    for (const std::int64_t v : values) {
      list.push_back({{"as_int", v}});
    }
    return list;
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const auto wrong = GENERATE_COPY(
      Case{"sizes", ints({2, 4}), "reaches beyond its record"},
      Case{"sizes", ints({kHuge, 3}), "reaches beyond its record"},
      Case{"strides", ints({kHuge, kHuge}), "reaches beyond its record"},
      Case{"strides", ints({3}), "2 sizes and 1 strides"},
      Case{"storage_offset", {{"as_int", 1}}, "reaches beyond its record"},
      Case{"storage_offset", {{"as_int", kHuge}}, "reaches beyond its record"},
      Case{
          "sizes", Json::array({{{"as_expr", {{"expr_str", "s0"}}}}, {{"as_int", 3}}}), "symbolic"},
      Case{"dtype", 8, "reaches beyond its record"},
      Case{"dtype", 5, "reaches beyond its record"},
      Case{"layout", 1, "is not dense"});
  CAPTURE(wrong.key, wrong.value.dump());
  MadeArchive archive = small_archive();
  archive.weights["config"]["fc.weight"]["tensor_meta"][wrong.key] = wrong.value;
  CHECK_THAT(refused_tensor(archive), ContainsSubstring(wrong.said));

  MadeArchive repeated = small_archive();
  Json& meta = repeated.weights["config"]["fc.weight"]["tensor_meta"];
  meta["sizes"] = ints({std::int64_t{1} << 31, std::int64_t{1} << 31});
  meta["strides"] = ints({0, 0});
  CHECK_THAT(refused_tensor(repeated), ContainsSubstring("repeats the bytes"));
}

}  // namespace
}  // namespace stagecraft
