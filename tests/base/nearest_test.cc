#include "stagecraft/base/nearest.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

TEST_CASE("a mistyped word finds the known word that was meant", "[base]") {
  const std::vector<std::string> known{"--layers", "--steps", "--stages", "--optimizer"};
  CHECK(nearest("--layer", known) == "--layers");
  CHECK(nearest("--lyaers", known) == "--layers");
  CHECK(nearest("--stepz", known) == "--steps");
  CHECK(nearest("--opti", known) == "--optimizer");
}

TEST_CASE("a short word may have one mistake, a long one a mistake in three letters", "[base]") {
  CHECK(nearest("--dp", {"--lr", "--ep"}) == "--ep");
  CHECK(nearest("--dp", {"--lr"}) == std::nullopt);
  CHECK(nearest("tset", {"train", "test"}) == "test");  // neighbors exchanged
  CHECK(nearest("tesst", {"train", "best"}) == std::nullopt);
  CHECK(nearest("--optmizr", {"--optimizer"}) == "--optimizer");
}

TEST_CASE("a word far from all others gets no guess", "[base]") {
  CHECK(nearest("--completely-else", {"--layers", "--lr"}) == std::nullopt);
  CHECK(nearest("--color", {"--costs", "--lr"}) == std::nullopt);
  CHECK(nearest("--color", {"--lr", "--floor", "--steps"}) == std::nullopt);
  CHECK(nearest("launch", {}) == std::nullopt);
  CHECK(did_you_mean("launch", {"train"}).empty());
  CHECK(did_you_mean("trian", {"train"}) == "did you mean train? ");
}

}  // namespace stagecraft
