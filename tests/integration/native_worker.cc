/// Is a worker program that knows the native stages of native_stage_test.cc.
#include "stagecraft/actors/launch/worker/worker_main.h"
#include "stagecraft/tests/integration/native_modules.h"

int main(int argc, char** argv) {
  if (!stagecraft::is_worker(argc, argv)) {
    return 2;
  }
  stagecraft::tests::register_native_modules();
  return stagecraft::worker_main(argc, argv);
}
