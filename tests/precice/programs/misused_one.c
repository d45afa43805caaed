/* One wrong call over preciceC.h, which ends the program with a sentence: misused_one WHAT. */
#include <math.h>
#include <precice/preciceC.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  double point[2] = {0, 0}, value = 0.0;
  int id = 0;
  const char *what = argc > 1 ? argv[1] : "";
  if (!strcmp(what, "unmade")) precicec_initialize();
  precicec_createParticipant(strcmp(what, "name") ? "A" : "Absent", "config.xml", 0, 1);
  if (!strcmp(what, "twice")) precicec_createParticipant("A", "config.xml", 0, 1);
  if (!strcmp(what, "mesh")) precicec_setMeshVertices("MC", 1, point, &id);
  precicec_setMeshVertices("MA", 1, point, &id);
  if (!strcmp(what, "advance")) precicec_advance(0.1);
  if (!strcmp(what, "read")) precicec_readData("MA", "X", 1, &id, 0.0, &value);
  if (!strcmp(what, "unasked")) precicec_initialize();
  value = NAN;
  if (!strcmp(what, "nan")) precicec_writeData("MA", "Y", 1, &id, &value);
  id = 7;
  value = 1.0;
  if (!strcmp(what, "id")) precicec_writeData("MA", "Y", 1, &id, &value);
  printf("goes on");
  return 0;
}
