/// Is a worker program with its own source.
#include "stagecraft/actors/launch/worker/worker_main.h"
#include "stagecraft/tests/integration/numbered_source.h"

int main(int argc, char** argv) {
  if (!stagecraft::is_worker(argc, argv)) {
    return 2;
  }
  stagecraft::tests::register_numbered_source();
  return stagecraft::worker_main(argc, argv);
}
