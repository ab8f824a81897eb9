/*
 * Predefined types without a name.
 */
#ifndef MADMPI_DATATYPE_UNNAMED_H
#define MADMPI_DATATYPE_UNNAMED_H

/* The end of MPI: the types themselves go with all others. */
void madmpi_type_forget_unnamed(void);

#endif
