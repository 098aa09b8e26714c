#include "stagecraft/actors/trainer/state/state_contents.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"

namespace stagecraft {
namespace {

StateListing listing_with(std::vector<std::string> names,
                          std::vector<std::vector<std::int64_t>> shapes) {
  StateListing listing{.names = std::move(names), .shapes = std::move(shapes)};
  listing.types.assign(listing.names.size(), "Float");
  return listing;
}

Graph graph_of_two() {
  Graph graph;
  graph.parameters = {{"a", at::zeros({2, 3})}, {"b", at::zeros({4})}};
  return graph;
}

/// Two ranks have one half each of everything of `a`; the third has a copy of the first's half.
std::vector<StateListing> shared_by_two() {
  return {listing_with({share_name("weight:a", 0, 2), "weight:b", share_name("exp_avg:a", 0, 2)},
                       {{2}, {4}, {2}}),
          listing_with({share_name("weight:a", 2, 6), share_name("exp_avg:a", 2, 6)}, {{4}, {4}}),
          listing_with({share_name("weight:a", 0, 2), "weight:b"}, {{2}, {4}})};
}

TEST_CASE("a state has each tensor once, with the ranks that have parts of it",
          "[actors][checkpoint]") {
  const auto contents =
      contents_of({{"buffer:count", at::zeros({}, at::kLong)}}, graph_of_two(), shared_by_two());
  REQUIRE(contents.size() == 4);
  CHECK(contents[0].name == "buffer:count");
  CHECK(contents[0].type == "Long");
  CHECK(contents[0].parts.empty());
  CHECK(contents[1].name == "weight:a");
  CHECK(contents[1].shape == std::vector<std::int64_t>{2, 3});
  REQUIRE(contents[1].parts.size() == 2);
  CHECK(contents[1].parts[1].rank == Rank(1));
  CHECK(contents[1].parts[1].position == 0);
  CHECK(contents[1].parts[1].begin == 2);
  CHECK(contents[2].name == "weight:b");
  CHECK(contents[2].shape == std::vector<std::int64_t>{4});
  REQUIRE(contents[2].parts.size() == 1);  // the first of the two ranks that have it
  CHECK(contents[2].parts[0].rank == Rank(0));
  CHECK(contents[3].name == "exp_avg:a");
  CHECK(contents[3].parts[0].position == 2);
}

TEST_CASE("a state of which elements are missing is found out", "[actors][checkpoint]") {
  std::vector<StateListing> listings = shared_by_two();
  listings[1] = {};
  CHECK(thrown_by([&] { (void)contents_of({}, graph_of_two(), listings); }) == Errc::Internal);
}

TEST_CASE("shares are put in their places, and a whole tensor is taken as it is",
          "[actors][checkpoint]") {
  const auto contents = contents_of({}, graph_of_two(), shared_by_two());
  const at::Tensor whole = at::arange(6, at::kFloat);
  const at::Tensor result = joined(contents.at(0), {whole.narrow(0, 0, 2), whole.narrow(0, 2, 4)});
  CHECK(at::equal(result, whole.view({2, 3})));
  const at::Tensor b = at::ones({4});
  CHECK(joined(contents.at(1), {b}).is_same(b));
}

}  // namespace
}  // namespace stagecraft
